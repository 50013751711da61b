"""Fixtures for every test. What only some tests need belongs in a conftest.py beside them."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests.support.postgres import PostgresCluster
from tests.support.rabbitmq import RabbitNode
from tests.support.shares import Shares

# Examples are slow on a busy machine and that is no failure. In CI a run can be repeated exactly.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Shares:
    return Shares(config, log)


@pytest.fixture(scope="session")
def rabbit() -> Iterator[RabbitNode]:
    """A RabbitMQ with its management server, started when the first test asks for it."""
    with RabbitNode() as node:
        yield node


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[PostgresCluster]:
    """One server per pytest-xdist worker, started when the first test asks for it."""
    with PostgresCluster() as cluster:
        yield cluster


@pytest.fixture
def postgres_url(postgres_cluster: PostgresCluster) -> Iterator[str]:
    """The URL of a database of the test's own, empty."""
    postgres_cluster.start()
    url = postgres_cluster.new_database()

    yield url

    postgres_cluster.start()
    postgres_cluster.drop_database(url)
