"""The lake and the computed tables for other tools: views of Spark, and sources of dbt.

create_views(spark, "/lake")     in any Spark session: a notebook, a job of your own
spark_sql("/lake", …)            the same as statements, for spark-sql and a Thrift server
dbt_sources("/lake", …)          sources.yml, with locations for dbt-duckdb
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from penstock.domain.lake.layout import TABLES
from penstock.domain.lake.places import local_path, object_url, scheme_of, spark_url
from penstock.files.delta_log import log_of
from penstock.pipeline.lake import TABLES_FOLDER, SparkLake
from penstock.pipeline.registry import computed_tables
from penstock.pipeline.schemas import DT, schema_of

SOURCE = "penstock"
_MEANINGS = {DT: "the day (UTC)", "snapshot_no": "number of the snapshot"}


class TableView(msgspec.Struct, frozen=True):
    name: str
    meaning: str
    path: str
    schema: T.StructType
    meanings: dict[str, str]  # by column
    partitions: int  # levels of folders between the path and the files

    @property
    def is_delta(self) -> bool:
        """True if its folders may also contain replaced files; only its log says which ones."""
        return log_of(self.path) is not None


def create_views(spark: SparkSession, lake: str, *, tables_folder: str | None = None) -> list[str]:
    """Create a temporary view for each table; returns their names.

    A table that has no files yet is empty.
    """
    found = SparkLake(spark, lake, tables_folder=tables_folder)
    names = [*TABLES, *computed_tables()]
    for name in names:
        found.read(name).createOrReplaceTempView(name)
    return names


def spark_sql(lake: str, *, tables_folder: str | None = None) -> str:
    """The statements; without those of tables that have no files in a folder of this machine."""
    views = [view for view in _views(lake, tables_folder) if _may_have_files(view.path)]
    return "\n\n".join(_statement(view) for view in views) + "\n"


def dbt_sources(lake: str, *, tables_folder: str | None = None) -> str:
    """JSON texts are also YAML."""
    lines = [
        "version: 2",
        "sources:",
        f"  - name: {SOURCE}",
        '    description: "history of Penstock, and what its pipeline computes"',
        "    tables:",
    ]
    for view in _views(lake, tables_folder):
        lines += _dbt_table(view)
    return "\n".join(lines) + "\n"


def _views(lake: str, tables_folder: str | None) -> Iterator[TableView]:
    folder = lake.rstrip("/")
    for table in TABLES.values():
        meanings = {column.name: column.meaning for column in table.columns}
        yield TableView(
            table.name,
            table.meaning,
            f"{folder}/{table.name}",
            schema_of(table),
            _MEANINGS | meanings,
            len(table.partitions),
        )
    folder = (tables_folder or f"{folder}/{TABLES_FOLDER}").rstrip("/")
    for computed in computed_tables().values():
        meanings = {field.name: field.meaning for field in computed.fields}
        path = f"{folder}/{computed.name}"
        schema = computed.schema
        yield TableView(computed.name, computed.meaning, path, schema, _MEANINGS | meanings, 1)


def _may_have_files(path: str) -> bool:
    """Spark rejects a view of a folder that does not exist.  Only local folders are examined."""
    return (
        scheme_of(path) is not None
        or next(Path(local_path(path)).rglob("*.parquet"), None) is not None
    )


def _statement(view: TableView) -> str:
    columns = ",\n".join(
        f"  `{field.name}` {field.dataType.simpleString().upper()}"
        f" COMMENT {_quote(view.meanings[field.name])}"
        for field in view.schema.fields
    )
    path = _quote(spark_url(view.path))
    if view.is_delta:  # its columns are in its log
        return f"CREATE OR REPLACE TEMPORARY VIEW {view.name}\nUSING delta OPTIONS (path {path});"
    return (
        f"CREATE OR REPLACE TEMPORARY VIEW {view.name} (\n{columns}\n)\n"
        f"USING parquet OPTIONS (path {path});"
    )


def _dbt_table(view: TableView) -> Iterable[str]:
    path = object_url(view.path)
    files = f"{path}/{'*/' * view.partitions}*.parquet"
    location = (
        f"delta_scan({_quote(path)})"
        if view.is_delta
        else f"read_parquet({_quote(files)}, hive_partitioning = true, "
        "hive_types_autocast = false, union_by_name = true)"
    )
    yield f"      - name: {view.name}"
    yield f"        description: {_json(view.meaning)}"
    yield "        config:"
    yield f"          external_location: {_json(location)}"
    yield "        columns:"
    for field in view.schema.fields:
        yield f"          - name: {field.name}"
        yield f"            description: {_json(view.meanings[field.name])}"


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
