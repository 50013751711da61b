"""SQL over HTTP: results, errors with stable codes, and its limits."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.domain.access.api_key import Role
from tests.edge.api import Api, assert_refused, ok
from tests.edge.conftest import MakeServer
from tests.edge.live import LiveServer
from tests.edge.native.conftest import LetIn
from tests.edge.pipeline_tables import write_lake

PATH = "/v1/sql"


@pytest.fixture
def lake(server: LiveServer) -> Iterator[Path]:
    found = Path(server.broker.settings.lake_folder)
    write_lake(found, "2031-01-01", [{"queue": "mail"}, {"queue": "shop"}, {"queue": "mail"}])
    yield found
    shutil.rmtree(found)


@pytest.mark.usefixtures("lake")
def test_a_statement_returns_columns_and_rows(api: Api) -> None:
    statement = "SELECT queue, count(*) AS n FROM history GROUP BY queue ORDER BY queue"

    assert ok(api.call("POST", PATH, {"sql": statement, "limit": 1})) == {
        "columns": [{"name": "queue", "type": "VARCHAR"}, {"name": "n", "type": "BIGINT"}],
        "rows": [["mail", 2]],
        "is_cut": True,
    }


@pytest.mark.usefixtures("lake")
def test_a_statement_that_is_not_allowed_or_wrong_fails_with_a_code(api: Api) -> None:
    refused = assert_refused(
        api.call("POST", PATH, {"sql": "DROP VIEW history"}), 400, "sql_failed"
    )
    assert refused == "only SELECT is allowed, not DROP"


def test_the_request_is_checked_before_anything_runs(api: Api) -> None:
    for wrong in ({"sql": " "}, {"sql": "x" * 100_001}, {"sql": "SELECT 1", "limit": 10_001}):
        assert_refused(api.call("POST", PATH, wrong), 400, "invalid_request")


def test_a_statement_that_takes_too_long_is_reported(make_server: MakeServer) -> None:
    with closing(Api(make_server(sql={"timeout_ms": 100}).url)) as api:
        assert_refused(api.call("POST", PATH, {"sql": "SELECT 1"}), 400, "sql_timeout")


def test_reading_all_queues_is_needed(let_in: LetIn) -> None:
    for key in (let_in(Role.READ, queues=("mail*",)), let_in(Role.PRODUCE), let_in(Role.CONSUME)):
        assert_refused(key.call("POST", PATH, {"sql": "SELECT 1"}), 403, "forbidden")
