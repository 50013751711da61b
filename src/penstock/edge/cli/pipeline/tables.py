"""`penstock pipeline tables` and `show`: the computed tables, read without Spark."""

from __future__ import annotations

from argparse import Namespace
from datetime import datetime
from typing import TYPE_CHECKING

from penstock.domain.errors import InvalidRequest
from penstock.domain.lake.tables import MAX_ROWS, TableReadiness
from penstock.domain.optional_parts import not_installed
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import argument, flag, limit_flag
from penstock.edge.cli.kit.flags import instant, number
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.view import View
from penstock.edge.cli.operate.archive import lake_flag, tables_flag, tables_folder
from penstock.edge.cli.pipeline.failures import LocalCommand
from penstock.edge.cli.pipeline.spark_command import FROM, TO
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.services.lake import Tables

_TABLE = View("name days first_day last_day bytes")
_VERSION = View("version committed_at operation")
_FIRST_DAY, _LAST_DAY = "0000-01-01", "9999-12-31"


def _list(settings: Settings, args: Namespace, out: Output) -> None:
    out.records(_tables(settings, args).tables(), _TABLE)


def _show(settings: Settings, args: Namespace, out: Output) -> None:
    found = _tables(settings, args).rows(
        args.table,
        from_day=getattr(args, "from") or _FIRST_DAY,
        to_day=args.to or _LAST_DAY,
        limit=args.limit,
        as_of=args.as_of,
    )
    if out.json:
        for row in found.rows:
            out.record(dict(zip(found.columns, row, strict=True)))
    else:
        out.table(found.columns, [tuple(row) for row in found.rows])
    if found.is_cut:
        exits.note(f"only the first {args.limit} rows are shown; --limit shows more")


def _versions(settings: Settings, args: Namespace, out: Output) -> None:
    out.records(_tables(settings, args).versions(args.table, limit=args.limit), _VERSION)


def _as_of(text: str) -> int | datetime:
    return int(text) if text.isdecimal() else instant(text)


def _tables(settings: Settings, args: Namespace) -> Tables:
    from penstock.wiring.tables import open_tables

    place = tables_folder(settings, args)
    tables = open_tables(place)
    match tables.readiness():
        case TableReadiness.NO_READER:
            raise InvalidRequest(not_installed("Parquet support", "archive"))
        case TableReadiness.NO_TABLES:
            raise InvalidRequest(f"{place} is empty; run penstock pipeline run first")
    return tables


COMMANDS = {
    "pipeline tables": LocalCommand(
        _list,
        lake_flag,
        tables_flag,
        more="Needs no Spark.",
        examples=(
            "penstock pipeline tables --data ./data",
            "penstock pipeline tables --lake s3://company-lake/penstock",
        ),
    ),
    "pipeline versions": LocalCommand(
        _versions,
        argument("TABLE", "name of a Delta table"),
        limit_flag(20),
        lake_flag,
        tables_flag,
        more="Newest first; `penstock pipeline show --as-of` reads one of them. Needs no Spark.",
        examples=("penstock pipeline versions slo --data ./data",),
    ),
    "pipeline show": LocalCommand(
        _show,
        argument("TABLE", "name of a table"),
        FROM,
        TO,
        flag(
            "--limit",
            "maximum number of rows",
            value="COUNT",
            type=number(1, MAX_ROWS),
            default=100,
        ),
        flag(
            "--as-of",
            "a version of a Delta table, or an instant: the rows as they were then",
            value="VERSION",
            type=_as_of,
        ),
        lake_flag,
        tables_flag,
        more="The newest days come first. Needs no Spark.",
        examples=(
            "penstock pipeline show slo --data ./data",
            "penstock pipeline show slo --data ./data --as-of 2030-01-31T12:00Z",
            "penstock pipeline show rollups --from 2030-01-31 --limit 1000 --json",
        ),
    ),
}
