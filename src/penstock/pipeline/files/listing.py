"""Which files the tables have, summed up by day: the memory of the driver does not grow with them.

On this machine's disk they are listed directly: Spark lists with a job of its own, which takes
longer than some jobs of the pipeline.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date

import msgspec
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.files.folder import is_visible
from penstock.pipeline.schemas import DT
from penstock.pipeline.spark.frames import frame_of
from penstock.pipeline.spark.progress import is_remote

_DAY = re.compile(rf"{DT}=(\d{{4}}-\d\d-\d\d)")
_PLACE = re.compile(rf"/([a-z_]+/{_DAY.pattern}/.+)$")


class DayFiles(msgspec.Struct, frozen=True):
    """The files of one day of a table."""

    digest: str  # of their names, sizes and times of change
    count: int = 1
    size: int = 0
    empty: str = ""  # a file without contents, which Spark would skip without an error


def files_by_day(spark: SparkSession, folder: str, table: str) -> dict[str, DayFiles]:
    """In the order of the days."""
    path = f"{folder}/{table}"
    here = local_path(spark, path)
    found = _listed_by_spark(spark, path) if here is None else _list_here(here, table)
    return {day: files for day, files in sorted(found) if _is_day(day)}


def summed_by_day(table: str, files: Iterable[tuple[str, int, int]]) -> dict[str, DayFiles]:
    """From the paths below the table's folder, sizes and times of change of its files."""
    days: dict[str, list[tuple[str, int, int]]] = {}
    for path, size, changed_at in sorted(files):
        day = _DAY.match(path)
        if day is not None and _is_day(day[1]):
            days.setdefault(day[1], []).append((f"{table}/{path}", size, changed_at))
    return {day: _sum_up(found) for day, found in sorted(days.items())}


def files_of_days(
    spark: SparkSession, folder: str, table: str, days: Collection[str]
) -> list[tuple[str, str]]:
    """The files of those days: the day, and the path with the size and the time of change."""
    path = f"{folder}/{table}"
    here = local_path(spark, path)
    if here is None:
        return _days_by_spark(spark, path, days)
    folders = {day: f"{here}/{DT}={day}" for day in days}
    return [
        (day, " ".join(map(str, file)))
        for day, folder in folders.items()
        for file in _files(folder, f"{table}/{DT}={day}")
    ]


def local_path(spark: SparkSession, path: str) -> str | None:
    """The path on this machine's disk; None if it is elsewhere, or the session is."""
    if is_remote(spark):
        return None
    context = spark.sparkContext
    found = context._jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]
    if found.getFileSystem(context._jsc.hadoopConfiguration()).getScheme() != "file":
        return None
    return str(found.toUri().getPath())


class HadoopFiles:
    """The Parquet files directly in a folder, wherever Hadoop reaches; not for Spark Connect."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        context = spark.sparkContext
        self._new_path = context._jvm.org.apache.hadoop.fs.Path  # type: ignore[union-attr]
        self._folder = self._new_path(folder)
        self._files = self._folder.getFileSystem(context._jsc.hadoopConfiguration())

    def names(self) -> list[str]:
        if not self._files.exists(self._folder):
            return []
        found = [str(status.getPath().getName()) for status in self._files.listStatus(self._folder)]
        return [name for name in found if name.endswith(".parquet")]

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            self._files.delete(self._new_path(self._folder, name), False)


def read_folders(
    spark: SparkSession, folders: Sequence[str], schema: StructType, *, base: str
) -> DataFrame:
    """The rows of the Parquet files; none if a folder does not exist yet.

    Folders of partitions are below `base`.
    """
    try:
        found = spark.read.schema(schema).option("basePath", base).parquet(*folders)
        found.schema  # noqa: B018 -- Spark Connect looks for the files only now
    except AnalysisException as error:
        if not _is_missing(error):
            raise
        return frame_of(spark, [], schema)
    return found


def _is_missing(error: AnalysisException) -> bool:
    """True if the folder does not exist yet, which is not an error."""
    return error.getCondition() == "PATH_NOT_FOUND"


def _list_here(path: str, table: str) -> Iterator[tuple[str, DayFiles]]:
    try:
        folders = [entry for entry in os.scandir(path) if _DAY.fullmatch(entry.name)]
    except FileNotFoundError:
        return
    for folder in folders:
        files = sorted(_files(folder.path, f"{table}/{folder.name}"))
        if files:
            yield folder.name[-10:], _sum_up(files)


def _files(folder: str, below: str) -> Iterator[tuple[str, int, int]]:
    """The files of one day: their paths, sizes and times of change."""
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in filter(lambda entry: is_visible(entry.name), entries):
        path = f"{below}/{entry.name}"
        if entry.is_dir():
            yield from _files(entry.path, path)
        elif entry.name.endswith(".parquet"):
            try:
                found = entry.stat()
            except FileNotFoundError:  # replaced since
                continue
            yield path, found.st_size, found.st_mtime_ns // 1_000_000


def _sum_up(files: Iterable[tuple[str, int, int]]) -> DayFiles:
    digest, count, size, empty = hashlib.sha256(), 0, 0, ""
    for file in files:
        digest.update(msgspec.json.encode(file))
        count, size = count + 1, size + file[1]
        empty = empty or ("" if file[1] else file[0])
    return DayFiles(digest.hexdigest()[:24], count, size, empty)


def _listed_by_spark(spark: SparkSession, path: str) -> Iterator[tuple[str, DayFiles]]:
    try:
        days = (
            _files_in_spark(spark, path)
            .groupBy(DT)
            .agg(
                F.sha2(F.array_join(F.array_sort(F.collect_list("file")), "\n"), 256).alias(
                    "digest"
                ),
                F.count(F.lit(1)).alias("count"),
                F.sum("length").alias("size"),
            )
        )
        rows = days.collect()
    except AnalysisException as error:
        if not _is_missing(error):
            raise
        return
    for row in rows:
        yield row[DT], DayFiles(row["digest"][:24], row["count"], row["size"])


def _days_by_spark(spark: SparkSession, path: str, days: Collection[str]) -> list[tuple[str, str]]:
    try:
        found = _files_in_spark(spark, f"{path}/{DT}={{{','.join(sorted(days))}}}")
        return [(row[DT], row["file"]) for row in found.select(DT, "file").collect()]
    except AnalysisException as error:
        if not _is_missing(error):
            raise
        return []


def _files_in_spark(spark: SparkSession, path: str) -> DataFrame:
    """The contents are not read.

    Spark leaves out files without contents; object stores and HDFS show no file that was cut short.
    """
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    place = F.regexp_extract("path", _PLACE.pattern, 1)
    found = reader.load(path).where(F.col("path").endswith(".parquet") & (place != ""))
    return found.select(
        F.regexp_extract(place, _DAY.pattern, 1).alias(DT),
        F.concat_ws(" ", place, F.col("length"), F.unix_millis("modificationTime")).alias("file"),
        "length",
    )


def _is_day(text: str) -> bool:
    """False for a folder such as dt=2030-02-30, which no archiver writes."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
