"""A store with unsafe settings is refused at the start, with the reason."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.faults import unsafe_sqlite
from tests.faults.conftest import MakeServer
from tests.faults.server import Server
from tests.support.postgres import PostgresCluster

REFUSED_WITHIN_S = 30.0


def assert_refuses(server: Server, *reasons: str) -> None:
    server.start(wait=False)

    code = server.wait_for_end(REFUSED_WITHIN_S)

    words = server.stderr_tail()
    assert code is not None, f"it started all the same\n{words}"
    assert code > 0, f"it ended with {code}\n{words}"
    assert any(reason in words for reason in reasons), f"{reasons} not in its words:\n{words}"
    assert "Traceback" not in words, f"a reason, not a trace:\n{words}"


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        (unsafe_sqlite.NO_WAL, "journal_mode"),
        (unsafe_sqlite.NO_SYNC, "synchronous"),
        (unsafe_sqlite.OLD, "SQLite"),
    ],
)
def test_sqlite_that_is_not_durable_is_refused(
    make_server: MakeServer, what: str, reason: str
) -> None:
    assert_refuses(make_server(pretend=what), reason)


@pytest.mark.parametrize("settings", [{"fsync": "off"}, {"full_page_writes": "off"}])
def test_postgresql_that_is_not_durable_is_refused(
    make_server: MakeServer, settings: Mapping[str, str]
) -> None:
    with PostgresCluster(settings=settings) as cluster:
        assert_refuses(make_server(cluster.new_database()), *settings)
