"""`penstock sql`: tables, JSON and CSV, from the lake on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.edge.cli.conftest import Run
from tests.edge.pipeline_tables import write_day, write_lake


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    write_lake(folder, "2031-01-01", [{"queue": "mail", "size": 1}, {"queue": "shop", "size": 20}])
    return folder


def test_the_result_is_a_table_json_or_csv(run: Run, lake: Path) -> None:
    statement = "SELECT queue, size AS n, size = 1 AS n FROM history ORDER BY size"

    table = run("sql", statement, "--lake", lake)
    json = run("sql", statement, "--lake", lake, "--json")
    csv = run("sql", "-", "--lake", lake, "--csv", stdin=statement)

    assert [line.split() for line in table.out.splitlines()[2:]] == [
        ["mail", "1", "yes"],
        ["shop", "20", "no"],
    ]
    assert json.records == [
        {"queue": "mail", "n": 1, "n_2": True},
        {"queue": "shop", "n": 20, "n_2": False},
    ]
    assert csv.out == "queue,n,n\nmail,1,true\nshop,20,false\n"
    assert run("sql", "SELECT 1", "--json", "--csv").code == 2


def test_computed_tables_may_be_elsewhere(run: Run, lake: Path, tmp_path: Path) -> None:
    write_day(tmp_path / "gold", "slo", "2031-01-01", [{"bad": 7}])

    ran = run("sql", "FROM slo SELECT bad", "--lake", lake, "--tables", tmp_path / "gold", "--csv")

    assert ran.out == "bad\n7\n"


def test_rows_beyond_the_limit_are_reported(run: Run, lake: Path) -> None:
    ran = run("sql", "FROM history SELECT size", "--lake", lake, "--limit", 1, "--csv")

    assert (ran.code, ran.out) == (0, "size\n1\n")
    assert "there are more rows: only 1 are shown" in ran.err


@pytest.mark.parametrize(
    ("flags", "statement", "code"),
    [
        ((), "SELECT nothing", "sql_failed"),
        ((), "DROP VIEW history", "sql_failed"),
        ((), "  ", "invalid_request"),
        (("--limit", "0"), "SELECT 1", "invalid_request"),
        (("--timeout", "100ms"), "SELECT 1", "sql_timeout"),
    ],
)
def test_an_error_is_one_line_with_a_code(
    run: Run, lake: Path, flags: tuple[str, ...], statement: str, code: str
) -> None:
    ran = run("sql", statement, "--lake", lake, *flags)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.endswith(f"({code})\n")
    assert ran.err.count("\n") == 1


def test_without_duckdb_the_error_names_what_to_install(
    run: Run, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.outbound.lake_sql.runner.find_spec", lambda name: None)

    ran = run("sql", "SELECT 1", "--lake", lake)

    assert (ran.code, "penstock-queue[sql]" in ran.err) == (1, True)


@pytest.mark.parametrize("command", [("sql", "FROM slo SELECT bad"), ("pipeline", "show", "slo")])
def test_a_lake_that_is_named_brings_its_own_tables(
    run: Run, lake: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    write_day(tmp_path / "gold", "slo", "2031-01-01", [{"bad": 7}])
    write_day(lake / "derived", "slo", "2031-01-01", [{"bad": 8}])
    configured = ("--set", f"insights.folder={tmp_path / 'gold'}", "--json")

    def bad(*flags: object) -> list[object]:
        return [row["bad"] for row in run(*command, *flags, *configured).records]

    assert bad("--set", f"archive.folder={lake}") == [7]
    assert bad("--lake", lake) == [8]
    assert bad("--lake", lake, "--tables", tmp_path / "gold") == [7]
