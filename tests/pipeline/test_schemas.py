"""One list of columns, from which all schemas are derived."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from penstock.domain.lake.layout import HISTORY, SNAPSHOTS, TABLES, LakeTable
from penstock.outbound import lake_files
from penstock.pipeline.registry import computed_tables
from penstock.pipeline.schemas import ComputedTable, conform, double, long, schema_of


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_spark_reads_the_columns_that_the_archiver_writes(table: LakeTable):
    written = from_arrow_schema(lake_files.schema_of(table))

    read = schema_of(table)

    assert read.fields[: len(table.columns)] == written.fields
    assert tuple(read.names[len(table.columns) :]) == table.partitions


def test_the_comparison_would_notice_a_column_of_another_type():
    other = lake_files.schema_of(HISTORY).set(0, pa.field("history_no", pa.int32(), False))

    assert schema_of(HISTORY).fields[: len(HISTORY.columns)] != from_arrow_schema(other).fields


def test_a_table_of_snapshots_has_the_number_of_the_snapshot():
    assert schema_of(SNAPSHOTS).names[-2:] == ["dt", "snapshot_no"]


def test_table_names_are_unique_and_every_column_has_a_meaning():
    assert not set(computed_tables()) & set(TABLES)
    for table in computed_tables().values():
        assert table.meaning
        assert all(field.meaning for field in table.fields)
        assert len(set(table.schema.names)) == len(table.fields) + 1


def test_a_number_that_does_not_fit_its_column_is_null(spark):
    table = ComputedTable(name="t", meaning="", fields=(long("n", ""), double("x", "")))
    rows = spark.sql("SELECT 1e30D AS n, 2L AS x, '2026-01-01' AS dt")

    [row] = conform(rows, table).collect()

    assert (row.n, row.x) == (None, 2.0)
