"""The docs are tested against a server that runs as a separate process."""

import pytest

from tests.edge.conftest import make_process, make_server

__all__ = ["make_process", "make_server"]


@pytest.fixture(params=["sqlite", "postgres", pytest.param("http", marks=pytest.mark.slow)])
def store_url(request: pytest.FixtureRequest) -> str:
    """What a page opens, in place of its own SQLite file."""
    match request.param:
        case "postgres":
            return str(request.getfixturevalue("migrated_url"))
        case "http":
            return str(request.getfixturevalue("make_process")().url)
    return "sqlite:///jobs.db"
