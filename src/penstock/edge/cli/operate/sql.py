"""`penstock sql`: one statement on the lake and the computed tables."""

from __future__ import annotations

import csv
import sys
from argparse import Namespace
from collections.abc import Iterable

import msgspec

from penstock.domain.lake.sql import SqlResult, unique_names
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import StoreCommand, argument, flag
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import setting_flag
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.operate.archive import lake_flag, tables_flag, tables_folder
from penstock.settings import Settings

STDIN = "-"


def _run(settings: Settings, args: Namespace, out: Output) -> None:
    if args.csv and out.json:
        raise UsageError("--csv and --json exclude each other")
    from penstock.wiring.sql import sql_of_command

    statement = sys.stdin.read() if args.sql == STDIN else args.sql
    with progress("Reading"):
        result = sql_of_command(settings, tables=tables_folder(settings, args)).run(statement)
    if args.csv:
        _print_csv(result)
    elif out.json:
        for row in _records(result):
            out.record(row)
    else:
        out.table([column.name for column in result.columns], map(tuple, result.rows))
    if result.is_cut:
        exits.note(f"there are more rows: only {len(result.rows)} are shown (sql.max_rows)")


def _records(result: SqlResult) -> Iterable[dict[str, object]]:
    names = unique_names(result.columns)
    return (dict(zip(names, row, strict=True)) for row in result.rows)


def _print_csv(result: SqlResult) -> None:
    lines = csv.writer(sys.stdout, lineterminator="\n")
    lines.writerow(column.name for column in result.columns)
    lines.writerows([_cell(value) for value in row] for row in result.rows)


def _cell(value: object) -> object:
    if isinstance(value, bool | dict | list):
        return msgspec.json.encode(value).decode()
    return value


COMMANDS = {
    "sql": StoreCommand(
        _run,
        argument("SQL", f"a SELECT statement in DuckDB's dialect; {STDIN} reads it from stdin"),
        flag("--csv", "print comma-separated values with a header"),
        lake_flag,
        tables_flag,
        setting_flag(
            "--limit", "sql.max_rows", value="N", text="maximum number of rows; default 10000"
        ),
        setting_flag(
            "--memory", "sql.max_memory_bytes", value="SIZE", text="memory limit; default 512MiB"
        ),
        setting_flag(
            "--timeout", "sql.timeout_ms", value="DURATION", text="time limit; default 30s"
        ),
        more="The tables are those of the lake (history, attempts, facts, backlog, …) and those "
        "that the pipeline computes; `SHOW TABLES` lists them and `DESCRIBE rollups` shows the "
        "columns of one. The statement can read nothing else and change nothing. No Spark is "
        "needed.",
        examples=(
            "penstock sql 'SELECT queue, outcome, count(*) AS n FROM history GROUP BY ALL'",
            "penstock sql 'SHOW TABLES' --lake /lake",
            "penstock sql --csv --limit 1000000 'FROM rollups' > rollups.csv",
            "penstock sql --json - < report.sql",
        ),
    )
}
