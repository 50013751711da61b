"""Penstock as a Spark data source and sink: `register(spark)`, then `format("penstock")`.

    register(spark)
    spark.read.format("penstock").option("url", "sqlite:///data/penstock.db").load()

See docs/archive.md.  Only programs that use Spark import this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    from penstock.client.spark.source import PenstockSource

    spark.dataSource.register(PenstockSource)


__all__ = ["register"]
