"""What errors of Spark's mean, in one line with a stable code.

unreadable_file     a Parquet file is damaged or has a column of another type
files_changed       a file was replaced while it was read: another run, or a stream
out_of_memory       Spark needs more memory
spark_unreachable   the connection to Spark was lost
spark_failed        anything else, with Spark's own first line
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

SPARK_ERRORS = (PySparkException, Py4JError)

_READ = re.compile(r"\[FAILED_READ_FILE\.(\w+)\][^\n]*? reading file ([^\n]+?\.parquet)\b([^\n]*)")
_PLACE = re.compile(r"[a-z_]+/dt=(\d{4}-\d\d-\d\d)/[^/]+.*$")
_COLUMN = re.compile(r"Parquet column <?\[?(\w+)\]?>?")
_GONE = "FILE_NOT_EXIST"
_JAVA_NAME = re.compile(r"^(?:[a-z]\w*\.)+[A-Z]\w*: ")
_CALL = re.compile(r"^An error occurred while calling \S+\.?$")
_LOST = (
    "StatusCode.UNAVAILABLE",
    "failed to connect to all addresses",
    "SparkContext was shut down",
    "Answer from Java side is empty",
)
_NO_CONNECTOR = re.compile(r'No FileSystem for scheme "?s3a|S3AFileSystem not found')
_LONGEST = 300


class UnreadableFile(msgspec.Struct, frozen=True):
    path: str  # below the folder of the lake or of the tables
    dt: str
    reason: str


class Explanation(msgspec.Struct, frozen=True):
    text: str
    code: str


def unreadable_file(error: Exception) -> UnreadableFile | None:
    """The file of a table that caused the error; None if none did."""
    for condition, path, more in _READ.findall(detail_of(error)):
        place = _PLACE.search(path)
        if place is not None and condition != _GONE:
            return UnreadableFile(place[0], place[1], _reason(more))
    return None


def explain(error: Exception) -> Explanation:
    file = unreadable_file(error)
    if file is not None:
        return Explanation(f"{file.path} cannot be read: {file.reason}", "unreadable_file")
    detail = detail_of(error)
    for condition, path, more in _READ.findall(detail):
        if condition != _GONE:
            return Explanation(_of_no_day(path, _reason(more)), "unreadable_file")
    if f"FAILED_READ_FILE.{_GONE}" in detail:
        return Explanation(
            "a file was replaced while it was read; repeat the command", "files_changed"
        )
    if "java.lang.OutOfMemoryError" in detail:
        return Explanation(
            "Spark ran out of memory; give it more with --conf spark.driver.memory=8g, or "
            "spark.executor.memory on a cluster",
            "out_of_memory",
        )
    if any(text in detail for text in _LOST):
        return Explanation("the connection to Spark was lost", "spark_unreachable")
    line = _first_line(str(error).splitlines())
    if _NO_CONNECTOR.search(detail):
        line += f"; add the connector: --conf spark.jars.packages={s3_connector()}"
    return Explanation(f"Spark failed: {line}", "spark_failed")


def s3_connector() -> str:
    """Hadoop's connector to S3, which is not in the package of Spark, for the same Hadoop."""
    jars = Path(pyspark.__file__).with_name("jars").glob("hadoop-client-api-*.jar")
    versions = [jar.stem.removeprefix("hadoop-client-api-") for jar in jars]
    return f"org.apache.hadoop:hadoop-aws:{versions[0] if versions else 'VERSION'}"


def detail_of(error: Exception) -> str:
    """The whole text, with the causes on the Java side, which may be in the stack trace only."""
    # Spark offers no public way to both: a local session has the first, Spark Connect the second.
    traces = (getattr(error, name, None) for name in ("_stackTrace", "_stacktrace"))
    return "\n".join([str(error), *(trace for trace in traces if trace)])


def _of_no_day(path: str, reason: str) -> str:
    """A file beside the tables: of the log of runs, or of a stream."""
    if path.split("/")[-2] == "runs":
        return (
            f"{path} cannot be read: {reason}; delete it and run again: the days that it records "
            "are computed again"
        )
    return f"{path} cannot be read: {reason}"


def _reason(more: str) -> str:
    column = _COLUMN.search(more)
    return "it is damaged" if column is None else f"column {column[1]} has another type"


def _first_line(lines: Iterable[str]) -> str:
    """The first line that says something, without the names of Java's classes."""
    for line in lines:
        plain = line.strip().removeprefix(": ")
        while _JAVA_NAME.match(plain):
            plain = _JAVA_NAME.sub("", plain)
        if plain and not _CALL.match(plain):
            return plain[:_LONGEST]
    return "no reason given"
