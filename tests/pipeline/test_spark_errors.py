"""Errors of Spark's in one line with a code."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from penstock.pipeline.lake import SparkLake
from penstock.pipeline.spark.errors import SPARK_ERRORS, explain, s3_connector, unreadable_file

FILE = "file:///srv/my%20lake/history/dt=2026-01-01/history-1-2.parquet"
PLACE = "history/dt=2026-01-01/history-1-2.parquet"


def read_error(condition: str, more: str = "") -> PySparkException:
    text = f"[FAILED_READ_FILE.{condition}] Encountered error while reading file {FILE}. {more}"
    return PySparkException(f"Job aborted due to stage failure: {text}SQLSTATE: KD001\n\tat org.x")


@pytest.mark.parametrize(
    ("error", "text", "code"),
    [
        (read_error("NO_HINT"), f"{PLACE} cannot be read: it is damaged", "unreadable_file"),
        (
            read_error(
                "PARQUET_COLUMN_DATA_TYPE_MISMATCH",
                "Data type mismatches when reading Parquet column <[size]>. Expected Spark type "
                "bigint, actual Parquet type BINARY. ",
            ),
            f"{PLACE} cannot be read: column size has another type",
            "unreadable_file",
        ),
        (
            read_error("FILE_NOT_EXIST", "File does not exist. "),
            "a file was replaced while it was read; repeat the command",
            "files_changed",
        ),
        (
            PySparkException("x\njava.lang.OutOfMemoryError: Java heap space"),
            "Spark ran out of memory; give it more with --conf spark.driver.memory=8g, or "
            "spark.executor.memory on a cluster",
            "out_of_memory",
        ),
        (
            PySparkException("<_InactiveRpcError: StatusCode.UNAVAILABLE>"),
            "the connection to Spark was lost",
            "spark_unreachable",
        ),
        (
            PySparkException(
                "An error occurred while calling o1.load.\n: org.apache.hadoop.fs.UnsupportedX: "
                'No FileSystem for scheme "s3a"\n\tat org.apache.hadoop.fs.FileSystem'
            ),
            'Spark failed: No FileSystem for scheme "s3a"; add the connector: '
            f"--conf spark.jars.packages={s3_connector()}",
            "spark_failed",
        ),
        (PySparkException(""), "Spark failed: no reason given", "spark_failed"),
    ],
)
def test_an_error_is_one_line_in_plain_words_with_a_code(error, text, code):
    found = explain(error)

    assert (found.text, found.code) == (text, code)


def test_the_file_may_be_named_in_the_java_stack_only():
    error = PySparkException("Task failed while writing rows")
    vars(error)["_stackTrace"] = f"Caused by: {read_error('CANNOT_READ_FILE_FOOTER')}"

    file = unreadable_file(error)

    assert file is not None
    assert (file.path, file.dt) == (PLACE, "2026-01-01")


def test_the_connector_to_s3_is_that_of_sparks_own_hadoop(spark, s3_place):
    hadoop = spark.sparkContext._jvm.org.apache.hadoop.util.VersionInfo.getVersion()

    assert s3_connector() == f"org.apache.hadoop:hadoop-aws:{hadoop}"
    with pytest.raises(SPARK_ERRORS) as raised:
        SparkLake(spark, s3_place).is_empty()
    assert explain(raised.value).text.endswith(f"spark.jars.packages={s3_connector()}")
