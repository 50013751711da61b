"""Small frames created here and passed to Spark as Arrow, which starts no Python process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def frame_of(
    spark: SparkSession, rows: Sequence[Mapping[str, object]], schema: StructType
) -> DataFrame:
    """Columns that a row does not have are null."""
    table = pa.Table.from_pylist([dict(row) for row in rows], to_arrow_schema(schema))
    return spark.createDataFrame(table, schema)
