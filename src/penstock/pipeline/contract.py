"""The contract with readers of the tables: every table, its version, its columns and their types.

    python -m penstock.pipeline.contract docs

writes docs/tables.json, for programs, and docs/tables.md; tests compare both with the code, and
with the contracts of released versions (tests/pipeline/released).
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import msgspec

from penstock.domain.lake import layout as lake
from penstock.pipeline.registry import computed_tables, job_of
from penstock.pipeline.schemas import DT, ColumnKind, ComputedTable

_PARQUET = {
    ColumnKind.TEXT: "string",
    ColumnKind.INT: "int32",
    ColumnKind.LONG: "int64",
    ColumnKind.DOUBLE: "double",
    ColumnKind.BOOL: "boolean",
    ColumnKind.HISTOGRAM: "map<int32, int64>",
}
_WIDTH = 130

_INTRODUCTION = """\
# The tables: schemas and versions

This page is for people who read the tables with their own programs. It is generated from the
code; `tables.json` beside it has the same for programs, and `penstock pipeline schema` prints it
for the version that you have installed. [The lake](archive.md) and [the pipeline](pipeline.md)
explain how the tables come about.

- **A version per table.** A table has a version, and every column the version that added it
  (*since*). The first version is 1. Every file of the lake also contains the version of the lake's
  format (`{key}`, now {version}).
- **Columns are only added**, and may then be null. None is removed, renamed or given another type
  or meaning.
- **Older files stay as they are.** The pipeline, the console and the command line read what an
  older version wrote, with nulls for what it lacks, and what a newer one wrote; unknown columns
  are ignored. Select columns by name, and have your reader unite schemas (DuckDB `union_by_name`,
  Spark `mergeSchema`, Polars `missing_columns`; a Delta table needs nothing).
- **A newer lake is not written to.** An archiver rejects a lake whose format is later than its own
  (`lake_refused`).
- Instants (`…_at`, `at`) are milliseconds since 1970 in UTC; `dt` is the day (UTC) in the names of
  the folders, as text.
"""


class ContractColumn(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    type: str  # in Parquet
    is_nullable: bool
    since: int
    meaning: str


class ContractTable(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    version: int
    meaning: str
    partitions: tuple[str, ...]
    columns: tuple[ContractColumn, ...]
    job: str | None = None  # that computes it; None: a table of the lake


class Contract(msgspec.Struct, frozen=True, kw_only=True):
    lake_schema_version: int
    lake: tuple[ContractTable, ...]
    computed: tuple[ContractTable, ...]


def contract() -> Contract:
    return Contract(
        lake_schema_version=lake.SCHEMA_VERSION,
        lake=tuple(_lake_table(table) for table in lake.TABLES.values()),
        computed=tuple(_computed_table(table) for table in computed_tables().values()),
    )


def document() -> str:
    return msgspec.json.format(msgspec.json.encode(contract()), indent=1).decode() + "\n"


def page() -> str:
    made = contract()
    introduction = _INTRODUCTION.format(key=lake.VERSION_KEY, version=lake.SCHEMA_VERSION)
    parts = [introduction, "## The lake\n", *map(_section, made.lake)]
    parts += ["## Computed tables\n", *map(_section, made.computed)]
    return "\n".join(parts)


def _lake_table(table: lake.LakeTable) -> ContractTable:
    return ContractTable(
        name=table.name,
        version=table.version,
        meaning=f"{table.meaning}; by the day of `{table.instant}`",
        partitions=table.partitions,
        columns=tuple(
            ContractColumn(
                name=column.name,
                type=_PARQUET[ColumnKind(column.type)],
                is_nullable=column.is_nullable,
                since=column.since,
                meaning=column.meaning,
            )
            for column in table.columns
        ),
    )


def _computed_table(table: ComputedTable) -> ContractTable:
    return ContractTable(
        name=table.name,
        version=table.version,
        meaning=table.meaning,
        partitions=(DT,),
        job=job_of(table.name),
        columns=tuple(
            ContractColumn(
                name=field.name,
                type=_PARQUET[field.kind],
                is_nullable=True,
                since=field.since,
                meaning=field.meaning,
            )
            for field in table.fields
        ),
    )


def _section(table: ContractTable) -> str:
    meaning = f"{table.meaning[0].upper()}{table.meaning[1:]}"
    where = "/".join(f"{name}=…" for name in table.partitions)
    folder = "" if table.job is None else "derived/"
    source = "" if table.job is None else f" Computed by the job `{table.job}`."
    text = f"{meaning}. Version {table.version}, in `{folder}{table.name}/{where}/`.{source}"
    rows = [
        f"| `{c.name}` | {c.type} | {'yes' if c.is_nullable else ''} | {c.since} | {c.meaning} |"
        for c in table.columns
    ]
    return "\n".join(
        [
            f"### {table.name}",
            "",
            textwrap.fill(text, _WIDTH, break_on_hyphens=False),
            "",
            "| column | type | null | since | meaning |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "tables.md").write_text(page(), encoding="utf-8")
    (folder / "tables.json").write_text(document(), encoding="utf-8")
