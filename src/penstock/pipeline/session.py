"""The Spark session: on this machine by default, or on the cluster that a master URL names.

    local[*]                            all cores of this machine
    spark://… yarn k8s://…              a cluster
    sc://host:15002                     Spark Connect: a session on another machine
    (none, under spark-submit)          the master that spark-submit was given

The rest of the pipeline does not know which of these it is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.domain.errors import InvalidRequest
from penstock.domain.optional_parts import not_installed
from penstock.pipeline.spark.java import quiet_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
CONNECT = "sc://"
GIB = 1024**3

# What the jobs depend on, wherever they run.
_EVERYWHERE = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # No limit: otherwise Spark would compute the size of the batch again after each row.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    # Otherwise Spark would look for the line of our code in each expression, for its own errors: a
    # twentieth of a small run.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Writes days concurrently: otherwise all rows would be sorted by day first.
    "spark.sql.maxConcurrentOutputFileWriters": "64",
}
# Spark's own progress bar would interleave with ours.
_QUIET = {"spark.ui.showConsoleProgress": "false"}
# For a machine that also runs other programs.
_HERE = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # An archiver leaves many small files, and opening one here is cheaper than a task of its own.
    "spark.sql.files.openCostInBytes": str(128 * 1024),
}
_LOG = Path(__file__).with_name("log4j2.properties")
_LOGGING = f'"-Dlog4j2.configurationFile={_LOG.as_uri()}"'
_VERBOSE = "-Dpenstock.spark.log=warn"  # read by that file
_SUBMIT_OPTIONS = "SPARK_SUBMIT_OPTS"  # further options of the driver's Java
_COLLECTOR = "-XX:+UseParallelGC"  # a tenth faster; its longer pauses do not matter here
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def open_session(
    master: str | None = None,
    *,
    more: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    is_verbose: bool = False,
) -> SparkSession:
    """`is_verbose`: Spark's log is shown.

    Raises InvalidRequest if Spark or Java is missing or the master cannot be reached.
    """
    environ = os.environ if environ is None else environ
    check_installed()
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    is_submitted = "PYSPARK_GATEWAY_PORT" in environ
    master = master or (None if is_submitted else LOCAL)
    builder = SparkSession.builder.appName("penstock")
    if master is not None and master.startswith(CONNECT):
        builder = builder.remote(master)
    elif master is not None:
        builder = builder.master(master)
    for key, value in (settings_for(master) | dict(more or {})).items():
        builder = builder.config(key, value)
    if not is_submitted and not (master or "").startswith(CONNECT):
        _point_at_java(environ)
        _set_logging(environ, master or LOCAL, is_verbose=is_verbose)
    elif is_submitted and not is_verbose:
        _silence_submitted()
    if (master or "").startswith("local"):
        # Otherwise any `python3` on the path would run the Python parts.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    try:
        return builder.getOrCreate()
    except (PySparkException, RuntimeError, OSError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        where = master or "the master"
        raise InvalidRequest(f"cannot open a Spark session at {where}: {lines[0]}") from error


def check_installed() -> None:
    """Raises InvalidRequest; call it before importing the rest of the pipeline."""
    if find_spec("pyspark") is None:
        raise InvalidRequest(not_installed("Spark", "spark"))


def settings_for(master: str | None) -> dict[str, str]:
    """The session's settings; those of a cluster are left to its operator."""
    if (master or "").startswith(CONNECT):
        return dict(_EVERYWHERE)
    if master is None or not master.startswith("local"):
        return _EVERYWHERE | _QUIET
    cores = os.cpu_count() or 1
    return {
        **_EVERYWHERE,
        **_QUIET,
        **_HERE,
        "spark.sql.shuffle.partitions": str(max(2, cores * 2)),
        "spark.driver.memory": f"{_driver_gib()}g",
        "spark.driver.extraJavaOptions": _COLLECTOR,
    }


def now_ms(spark: SparkSession) -> int:
    """The time on the machine that runs Spark, for the log of runs."""
    from pyspark.sql import functions as F

    [row] = spark.range(1).select(F.unix_millis(F.current_timestamp()).alias("now")).collect()
    return int(row.now)


def _point_at_java(environ: Mapping[str, str]) -> None:
    # Spark's own start script, a child of this process, reads it from the environment.
    os.environ["JAVA_HOME"] = quiet_java_home(environ)


def _set_logging(environ: Mapping[str, str], master: str, *, is_verbose: bool) -> None:
    """Keep Spark's log off the terminal; on a cluster, `is_verbose` shows the operator's own."""
    if is_verbose and not master.startswith("local"):
        return
    # Not in the session's settings, where it would replace options that an operator has set there.
    given = environ.get(_SUBMIT_OPTIONS, "")
    if _LOGGING not in given:
        options = [given, _LOGGING, _VERBOSE if is_verbose else ""]
        os.environ[_SUBMIT_OPTIONS] = " ".join(filter(None, options))


def _silence_submitted() -> None:
    """The same in a Java that spark-submit has started, before it opens a session."""
    from pyspark import SparkContext

    SparkContext._ensure_initialized()
    java = SparkContext._jvm.org.apache  # type: ignore[union-attr]
    # Spark sets up its logging with the first line, and would then undo our change.
    java.spark.SparkConf().initializeLogIfNecessary(False, True)
    off = java.logging.log4j.Level.OFF
    java.logging.log4j.core.config.Configurator.setAllLevels("", off)


def _driver_gib() -> int:
    """Half of the memory of this machine or container."""
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if _CGROUP.exists() and (text := _CGROUP.read_text().strip()).isdecimal():
        most = min(most, int(text))
    return max(1, min(32, most // 2 // GIB))
