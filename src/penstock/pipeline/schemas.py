"""Spark schemas of the lake's tables (domain/lake/layout.py) and of the jobs' tables.

A job's module declares its tables.  Columns are only ever added.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import partial

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from penstock.domain.lake import layout as lake

DT = "dt"  # the day (UTC), by which every table is partitioned


class ColumnKind(StrEnum):
    """Includes the types of the lake's columns."""

    TEXT = "text"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    BOOL = "bool"
    HISTOGRAM = "histogram"  # counts by bucket number: see pipeline/histogram.py


_COLUMN_TYPES: dict[str, T.DataType] = {
    ColumnKind.TEXT: T.StringType(),
    ColumnKind.INT: T.IntegerType(),
    ColumnKind.LONG: T.LongType(),
    ColumnKind.DOUBLE: T.DoubleType(),
    ColumnKind.BOOL: T.BooleanType(),
    ColumnKind.HISTOGRAM: T.MapType(T.IntegerType(), T.LongType()),
}


class Field(msgspec.Struct, frozen=True):
    kind: ColumnKind
    name: str
    meaning: str
    since: int = 1  # the version of the table that added it


text = partial(Field, ColumnKind.TEXT)
integer = partial(Field, ColumnKind.INT)
long = partial(Field, ColumnKind.LONG)
double = partial(Field, ColumnKind.DOUBLE)
boolean = partial(Field, ColumnKind.BOOL)
histogram = partial(Field, ColumnKind.HISTOGRAM)


class ComputedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table that a job writes, partitioned by `dt`, which is not among its fields."""

    name: str
    meaning: str
    fields: tuple[Field, ...]
    is_large: bool = False  # written without a shuffle, which puts a day into one file

    @property
    def version(self) -> int:
        return max(field.since for field in self.fields)

    @property
    def schema(self) -> T.StructType:
        return T.StructType([*(_field(f) for f in self.fields), _DT_FIELD])


def schema_of(table: lake.LakeTable) -> T.StructType:
    """The schema of a lake table, with its partition columns last."""
    inner = [T.StructField(name, T.LongType()) for name in table.partitions if name != DT]
    return T.StructType([*fields_of(table.columns), _DT_FIELD, *inner])


def fields_of(columns: Iterable[lake.LakeColumn]) -> list[T.StructField]:
    return [T.StructField(c.name, _COLUMN_TYPES[c.type], c.is_nullable) for c in columns]


def conform(table: DataFrame, to: ComputedTable) -> DataFrame:
    """Select exactly the columns of a computed table, with its order and types.

    A number that does not fit is null: only absurd rows lead to one, and it must not end the run.
    """
    fields = to.schema.fields
    return table.select(*(F.col(f.name).try_cast(f.dataType).alias(f.name) for f in fields))


def _field(field: Field) -> T.StructField:
    return T.StructField(field.name, _COLUMN_TYPES[field.kind])


_DT_FIELD = T.StructField(DT, T.StringType())
