"""The plugin as users have it, and the environments of the client that a kit can be used in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.client import conftest as client
from tests.client.environments import Backend, Environment
from tests.store import conftest as stores
from tests.store.backends import RenewableDatabase

pytest_plugins = ["pytester"]

pytest_generate_tests = client.pytest_generate_tests
pytest_pyfunc_call = client.pytest_pyfunc_call
callers_loop = client.callers_loop
folder = client.folder
renewable_database = stores.renewable_database
environment = client.environment


@pytest.fixture
def kit_url(environment: Environment, folder: Path, request: pytest.FixtureRequest) -> str:
    """An empty store: a kit looks at all of it."""
    if environment.backend is Backend.SQLITE:
        return f"sqlite:///{folder / 'kit.db'}"
    home: RenewableDatabase = request.getfixturevalue("renewable_database")
    return home.renew()
