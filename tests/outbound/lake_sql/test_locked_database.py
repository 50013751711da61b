"""SQL on the lake: what a statement reads, and that it reads nothing else and changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.domain.errors import SqlFailed
from penstock.domain.lake.layout import TABLES
from penstock.domain.lake.sql import SqlLimits, SqlResult
from penstock.outbound.lake_sql import locked_database
from penstock.outbound.lake_sql.datasets import LakeDatasets
from tests.edge.pipeline_tables import write_day, write_lake

LIMITS = SqlLimits(rows=100, bytes=1_000_000, memory_bytes=128 * 2**20, timeout_ms=1)
FIRST, SECOND = "2031-01-01", "2031-01-02"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write_lake(tmp_path, FIRST, [{"queue": "mail", "size": 1}, {"queue": "shop", "size": 2}])
    write_lake(tmp_path, SECOND, [{"queue": "mail", "size": 4}])
    write_day(tmp_path / "derived", "slo", FIRST, [{"queue": "mail", "bad": 1}])
    write_day(tmp_path / "derived", "slo", SECOND, [{"queue": "mail", "bad": 2, "burn": 0.5}])
    return tmp_path


def run(lake: Path, statement: str, **limits: int) -> SqlResult:
    changed = msgspec.structs.replace(LIMITS, **limits)
    found = locked_database.run(statement, LakeDatasets(str(lake), str(lake / "derived")), changed)
    return msgspec.json.decode(msgspec.json.encode(found), type=SqlResult)


def rows(lake: Path, statement: str, **limits: int) -> list[list[Any]]:
    return run(lake, statement, **limits).rows


def test_tables_of_the_lake_and_computed_ones_are_joined_by_day(lake: Path) -> None:
    found = run(
        lake,
        "SELECT dt, sum(size) AS bytes, any_value(bad) AS bad FROM history JOIN slo USING (dt)"
        " GROUP BY dt ORDER BY dt",
    )

    assert [column.name for column in found.columns] == ["dt", "bytes", "bad"]
    assert [column.type for column in found.columns] == ["VARCHAR", "HUGEINT", "BIGINT"]
    assert (found.rows, found.is_cut) == ([[FIRST, 3, 1], [SECOND, 4, 2]], False)


def test_a_column_that_was_added_later_is_null_in_older_days(lake: Path) -> None:
    assert rows(lake, "SELECT dt, burn FROM slo ORDER BY dt") == [[FIRST, None], [SECOND, 0.5]]


def test_all_tables_are_listed_also_those_without_rows(lake: Path) -> None:
    assert [name for (name,) in rows(lake, "SHOW TABLES")] == sorted([*TABLES, "slo"])
    assert rows(lake, "SELECT count(*) FROM snapshots") == [[0]]
    assert ["snapshot_no", "BIGINT"] in [row[:2] for row in rows(lake, "DESCRIBE snapshots")]


def test_a_table_can_be_named_by_a_text(lake: Path) -> None:
    assert rows(lake, "FROM query_table('s' || 'lo') SELECT count(*)") == [[2]]


def test_the_log_of_runs_is_a_table_and_the_state_of_a_stream_is_not(lake: Path) -> None:
    for place in ("runs/part-0.parquet", "stream/lake/kept/part-0.parquet"):
        (lake / "derived" / place).parent.mkdir(parents=True)
        pq.write_table(pa.table({"job": ["slo"]}), lake / "derived" / place)

    assert rows(lake, "SELECT * FROM runs") == [["slo"]]
    assert "stream" not in [name for (name,) in rows(lake, "SHOW TABLES")]


def test_files_that_are_still_written_are_not_read(lake: Path) -> None:
    (lake / "history" / f"dt={FIRST}" / ".tmp-history.parquet").write_bytes(b"not yet")
    (lake / "derived" / "slo" / "_temporary").mkdir()
    (lake / "derived" / "slo" / "_temporary" / "part-0.parquet").write_bytes(b"not yet")

    assert rows(lake, "SELECT (SELECT count(*) FROM history), count(*) FROM slo") == [[3, 2]]


def test_a_damaged_file_is_named(lake: Path) -> None:
    file = write_lake(lake, "2031-01-03", [{}])
    file.write_bytes(b"damaged")

    with pytest.raises(SqlFailed, match=file.name):
        rows(lake, "SELECT sum(size) FROM history")


def test_values_become_json(lake: Path) -> None:
    statement = (
        "SELECT 1.50, DATE '2031-01-01', TIMESTAMPTZ '2031-01-01 01:00:00+01', NULL, true, "
        "9223372036854775808, [1, NULL], {'a': 1}, MAP {2: 'b'}, 'NaN'::DOUBLE, '\\xAA'::BLOB"
    )
    assert rows(lake, statement) == [
        [
            *(1.5, FIRST, "2031-01-01T00:00:00Z", None, True),
            *("9223372036854775808", [1, None], {"a": 1}, {"2": "b"}, None, "qg=="),
        ]
    ]


def test_rows_beyond_the_limit_are_cut_off(lake: Path) -> None:
    cut = run(lake, "SELECT size FROM history ORDER BY size", rows=2)
    assert (cut.rows, cut.is_cut) == ([[1], [2]], True)
    assert not run(lake, "SELECT size FROM history", rows=3).is_cut


def test_a_result_beyond_the_limit_of_bytes_is_cut_off_and_one_large_row_is_refused(
    lake: Path,
) -> None:
    cut = run(lake, "SELECT repeat('x', 100) FROM range(50)", bytes=1_000)
    assert (len(cut.rows), cut.is_cut) == (9, True)
    with pytest.raises(SqlFailed, match="more than 1000 bytes"):
        run(lake, "SELECT repeat('x', 2000)", bytes=1_000)


def test_a_statement_that_needs_too_much_memory_fails(lake: Path) -> None:
    with pytest.raises(SqlFailed, match="more than 64 MiB of memory"):
        run(lake, "SELECT list(i) FROM range(100000000) t(i)", memory_bytes=64 * 2**20)


def test_an_error_is_one_line_with_the_line_of_the_statement(lake: Path) -> None:
    with pytest.raises(SqlFailed) as failed:
        rows(lake, "SELECT 1\n  FROM WHERE")

    assert "syntax error" in str(failed.value)
    assert str(failed.value).endswith("; line 2")
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize(
    "statement",
    [
        *("ATTACH '{file}' AS x", "DETACH memory", "USE memory"),
        *("COPY slo TO '{file}'", "COPY slo FROM '{file}'", "EXPORT DATABASE '{file}'"),
        *("IMPORT DATABASE '{file}'", "INSTALL httpfs", "LOAD httpfs", "LOAD '{file}'"),
        *("SET enable_external_access = true", "SET GLOBAL threads = 64", "RESET memory_limit"),
        *("PRAGMA enable_profiling", "PRAGMA database_list", "CALL pragma_version()"),
        *("CREATE TABLE x AS SELECT 1", "CREATE MACRO f(a) AS a", "CREATE SECRET (TYPE s3)"),
        *("DROP VIEW slo", "ALTER VIEW slo RENAME TO x", "COMMENT ON VIEW slo IS 'x'"),
        *("INSERT INTO slo VALUES (1)", "UPDATE slo SET bad = 0", "DELETE FROM slo", "VACUUM"),
        *("BEGIN", "CHECKPOINT", "PREPARE p AS SELECT 1", "EXECUTE p"),
        *("PIVOT slo ON dt USING sum(bad)", "SELECT 1; SELECT 2", "-- nothing"),
    ],
)
def test_only_one_select_is_accepted(lake: Path, statement: str) -> None:
    with pytest.raises(SqlFailed, match=r"only SELECT is allowed|one statement|PIVOT needs"):
        rows(lake, statement.format(file=lake / "x.duckdb"))

    assert not (lake / "x.duckdb").exists()


@pytest.mark.parametrize(
    "source",
    [
        *("read_text('{file}')", "read_blob('{file}')", "read_csv('{file}')", "'{file}'"),
        *("read_json('{file}')", "read_parquet('{file}')", "parquet_scan('{file}')"),
        *("parquet_metadata('{file}')", "parquet_schema('{file}')", "sniff_csv('{file}')"),
        *("glob('{folder}/*')", "read_ndjson_objects('{file}')", "'https://localhost/x.csv'"),
        *("read_parquet('s3://bucket/x')", "secret", "pandas_scan(1)", "arrow_scan(1, 2, 3)"),
        *("query('COPY slo TO ''{file}''')", "read_duckdb('{file}')"),
    ],
)
def test_no_other_file_address_or_variable_is_read(lake: Path, source: str) -> None:
    file = lake / "secret.csv"
    file.write_text("secret\n1\n")
    secret = pa.table({"secret": [1]})

    with pytest.raises(SqlFailed, match=r"disabled|does not exist|No function matches|SELECT"):
        rows(lake, f"SELECT * FROM {source.format(file=file, folder=lake)}")

    assert secret.num_rows, "a variable that DuckDB could have found"


def test_explaining_a_statement_does_not_do_what_it_would_do(lake: Path) -> None:
    assert rows(lake, "EXPLAIN SELECT * FROM slo")
    with pytest.raises(SqlFailed, match="disabled by configuration"):
        rows(lake, f"EXPLAIN ANALYZE COPY slo TO '{lake / 'x.csv'}'")


def test_even_without_the_check_of_statements_the_database_is_locked(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locked_database, "_check", lambda statements: None)

    for statement in (
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        f"ATTACH '{lake / 'x.duckdb'}'",
        f"COPY slo TO '{lake / 'x.csv'}'",
        "INSTALL httpfs",
        "LOAD httpfs",
    ):
        with pytest.raises(SqlFailed, match=r"disabled|locked"):
            rows(lake, statement)

    assert {path.name for path in lake.iterdir()} == {"history", "derived"}


def test_duckdb_can_do_all_that_where_it_is_not_locked(tmp_path: Path) -> None:
    """So that the tests above fail for the right reason."""
    file = tmp_path / "secret.csv"
    file.write_text("secret\n1\n")
    with duckdb.connect() as open_database:
        assert open_database.sql(f"SELECT * FROM read_csv('{file}')").fetchall() == [(1,)]
        open_database.execute(f"ATTACH '{tmp_path / 'x.duckdb'}'")
        open_database.execute(f"COPY (SELECT 1) TO '{tmp_path / 'x.csv'}'")
