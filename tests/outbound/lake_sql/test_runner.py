"""The process of a statement: its result, its end when it takes too long or crashes."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.domain.errors import (
    InvalidRequest,
    ShuttingDown,
    SqlFailed,
    SqlTimeout,
    TooManyWaiting,
)
from penstock.domain.lake.sql import SqlColumn, SqlLimits
from penstock.outbound.lake_sql.runner import SqlProcesses
from penstock.services.sql import SqlService
from tests.edge.pipeline_tables import write_lake

LIMITS = SqlLimits(rows=10, bytes=10_000, memory_bytes=128 * 2**20, timeout_ms=60_000)
ENDLESS = "SELECT count(*) FROM range(1000000000000) a, range(1000000000000) b WHERE a.range < 0"


@pytest.fixture
def processes(tmp_path: Path) -> SqlProcesses:
    write_lake(tmp_path, "2031-01-01", [{"queue": "mail"}, {"queue": "mail"}])
    return SqlProcesses(str(tmp_path), str(tmp_path / "derived"))


def a_process(source: str) -> SqlProcesses:
    return SqlProcesses("lake", "tables", command=(sys.executable, "-c", source))


def test_a_statement_returns_its_rows(processes: SqlProcesses) -> None:
    found = processes.run("SELECT queue, count(*) AS n FROM history GROUP BY queue", LIMITS)

    assert found.columns == [SqlColumn("queue", "VARCHAR"), SqlColumn("n", "BIGINT")]
    assert (found.rows, found.is_cut) == ([["mail", 2]], False)


def test_a_statement_that_fails_reports_why(processes: SqlProcesses) -> None:
    with pytest.raises(SqlFailed, match="nothing does not exist"):
        processes.run("SELECT * FROM nothing", LIMITS)


def test_a_statement_that_takes_too_long_is_ended(processes: SqlProcesses) -> None:
    late = SqlLimits(rows=1, bytes=100, memory_bytes=LIMITS.memory_bytes, timeout_ms=2_000)

    with pytest.raises(SqlTimeout, match="longer than 2s"):
        processes.run(ENDLESS, late)


def test_a_process_that_crashes_is_a_failed_statement() -> None:
    with pytest.raises(SqlFailed, match="ended with code -9"):
        a_process("import os; os.kill(os.getpid(), 9)").run("SELECT 1", LIMITS)


def test_closing_ends_statements_that_run_and_accepts_no_more(tmp_path: Path) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    processes = a_process(f"import sys; open({str(started)!r}, 'w').close(); sys.stdin.read()")

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(processes.run, "SELECT 1", LIMITS)
        started.read_bytes()  # waits until the process opens it
        processes.close()
        with pytest.raises(ShuttingDown):
            running.result(60)

    with pytest.raises(ShuttingDown):
        processes.run("SELECT 1", LIMITS)


def test_a_server_runs_at_most_the_limit_of_statements_at_a_time(tmp_path: Path) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    processes = a_process(f"import sys; open({str(started)!r}, 'w').close(); sys.stdin.read()")
    service = SqlService(processes, LIMITS, max_running=1)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(service.run, "SELECT 1")
        started.read_bytes()
        with pytest.raises(TooManyWaiting, match="1 SQL statements are running"):
            service.run("SELECT 1")
        service.close()
        with pytest.raises(ShuttingDown):
            running.result(60)


def test_a_server_may_run_none(processes: SqlProcesses) -> None:
    with pytest.raises(InvalidRequest, match=r"sql\.max_running = 0"):
        SqlService(processes, LIMITS, max_running=0).run("SELECT 1")
