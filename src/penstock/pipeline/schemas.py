"""Tables as Spark knows them: those of the lake (domain/lake/layout.py) and those of the jobs.

A derived table is said where its job is.  Columns are only ever added to either.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from penstock.domain.lake import layout as lake

DT = "dt"  # the day (UTC), by which every table is partitioned

_BRONZE: dict[lake.Type, T.DataType] = {
    lake.Type.TEXT: T.StringType(),
    lake.Type.INT: T.IntegerType(),
    lake.Type.LONG: T.LongType(),
    lake.Type.BOOL: T.BooleanType(),
}


class Kind(StrEnum):
    TEXT = "text"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    BOOL = "bool"
    HISTOGRAM = "histogram"  # how many by number of bucket: see pipeline/histogram.py


_DERIVED: dict[Kind, T.DataType] = {
    Kind.TEXT: T.StringType(),
    Kind.INT: T.IntegerType(),
    Kind.LONG: T.LongType(),
    Kind.DOUBLE: T.DoubleType(),
    Kind.BOOL: T.BooleanType(),
    Kind.HISTOGRAM: T.MapType(T.IntegerType(), T.LongType()),
}


class Field(msgspec.Struct, frozen=True):
    name: str
    kind: Kind
    meaning: str


class Derived(msgspec.Struct, frozen=True, kw_only=True):
    """A table that a job writes, partitioned by `dt`, which is not among its fields."""

    name: str
    meaning: str
    fields: tuple[Field, ...]
    is_large: bool = False  # about as many rows as messages: written as they come

    @property
    def schema(self) -> T.StructType:
        return T.StructType([*(_field(f) for f in self.fields), _DT_FIELD])


def text(name: str, meaning: str) -> Field:
    return Field(name, Kind.TEXT, meaning)


def integer(name: str, meaning: str) -> Field:
    return Field(name, Kind.INT, meaning)


def long(name: str, meaning: str) -> Field:
    return Field(name, Kind.LONG, meaning)


def double(name: str, meaning: str) -> Field:
    return Field(name, Kind.DOUBLE, meaning)


def boolean(name: str, meaning: str) -> Field:
    return Field(name, Kind.BOOL, meaning)


def histogram(name: str, meaning: str) -> Field:
    return Field(name, Kind.HISTOGRAM, meaning)


def schema_of(table: lake.LakeTable) -> T.StructType:
    """Of a table of the lake, the columns of its partitions last."""
    columns = [T.StructField(c.name, _BRONZE[c.type], c.is_nullable) for c in table.columns]
    inner = [T.StructField(name, T.LongType()) for name in table.partitions if name != DT]
    return T.StructType([*columns, _DT_FIELD, *inner])


def conform(table: DataFrame, to: Derived) -> DataFrame:
    """Exactly the columns of a derived table, in their order and of their types."""
    return table.select(*(F.col(f.name).cast(f.dataType).alias(f.name) for f in to.schema.fields))


def _field(field: Field) -> T.StructField:
    return T.StructField(field.name, _DERIVED[field.kind])


_DT_FIELD = T.StructField(DT, T.StringType())
