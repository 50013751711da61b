"""Rows of the lake with defaults, so that a test mentions only what matters to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from penstock.domain.datetimes import moment_of
from penstock.domain.lake import layout as lake
from penstock.domain.lake.layout import LakeTable, Type
from penstock.domain.limits import DAY
from penstock.pipeline.schemas import ComputedTable, schema_of
from penstock.pipeline.spark.frames import frame_of

NOON = 1_767_268_800_000  # 2026-01-01T12:00Z
DT = "2026-01-01"
NEXT_DT = "2026-01-02"

_ZERO = {Type.TEXT: "", Type.INT: 0, Type.LONG: 0, Type.BOOL: False}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "history": {
        "id": "m-1",
        "queue_no": 1,
        "queue": "mail",
        "outcome": "done",
        "sent_at": NOON - 1_500,
        "due_at": NOON - 1_500,
        "first_leased_at": NOON - 500,
        "leased_at": NOON - 500,
        "finished_at": NOON,
        "attempts": 1,
        "lease_no": 1,
        "size": 100,
    },
    "attempts": {
        "id": "m-1",
        "queue_no": 1,
        "queue": "mail",
        "lease_no": 1,
        "outcome": "failed",
        "leased_at": NOON - 500,
        "ended_at": NOON,
    },
    "facts": {"at": NOON, "kind": "worker_lost", "subject": "w-1", "data": "{}"},
    "backlog": {"at": NOON, "queue_no": 1, "queue": "mail"},
}


def row(table: LakeTable, number: int, **given: Any) -> dict[str, Any]:
    """`number` counts the rows of a test: it numbers the row and, if there is one, the message."""
    unknown = set(given) - {column.name for column in table.columns} - {"dt"}
    assert not unknown, f"{table.name} has no {unknown}"
    plain = {c.name: None if c.is_nullable else _ZERO[c.type] for c in table.columns}
    numbers = {table.number: number} | ({"message_no": number} if "message_no" in plain else {})
    made: dict[str, Any] = plain | _DEFAULTS.get(table.name, {}) | numbers | given
    return {"dt": lake.dt_of(made[table.instant])} | made


def rows(table: LakeTable, *given: dict[str, Any]) -> list[dict[str, Any]]:
    return [row(table, number, **one) for number, one in enumerate(given, start=1)]


def frame(spark: SparkSession, table: LakeTable, *given: dict[str, Any]) -> DataFrame:
    """A table of the lake, as a job reads it: Spark does not trust files to have no nulls."""
    schema = StructType([StructField(f.name, f.dataType) for f in schema_of(table)])
    return frame_of(spark, rows(table, *given), schema)


def computed(spark: SparkSession, table: ComputedTable, *given: dict[str, Any]) -> DataFrame:
    """A table of a job; what is not given is null."""
    unknown = {name for one in given for name in one} - set(table.schema.names)
    assert not unknown, f"{table.name} has no {unknown}"
    return frame_of(spark, given, table.schema)


def pairs(table: DataFrame, *names: str) -> Sequence[tuple[Any, ...]]:
    """Some columns of a small table, in order."""
    return sorted((tuple(r) for r in table.select(*names).collect()), key=repr)


def midnight(dt: str = DT) -> int:
    return lake.midnight_of(dt)


def at(clock: str, dt: str = DT) -> int:
    """An instant of a day: at("12:00:01.500")"""
    hours, minutes, seconds = clock.split(":")
    ms = round((int(hours) * 3600 + int(minutes) * 60 + float(seconds)) * 1000)
    assert 0 <= ms < DAY
    return midnight(dt) + ms


def day_after(dt: str, days: int = 1) -> str:
    return moment_of(midnight(dt) + days * DAY).date().isoformat()
