"""`python -m bench.pipeline.driver_memory [--days 8] [--times 1,10,100]`

The memory of the driver with more and more files and queues: all days but the last are computed
first, and then the last one in a process of its own, whose memory is measured meanwhile.  "Live" is
what a garbage collection leaves; executors are threads of the same process here.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.domain.lake import layout
from penstock.domain.lake.layout import BACKLOG, HISTORY, Range
from penstock.domain.limits import DAY, MINUTE
from penstock.outbound.lake_files import schema_of

FIRST_DAY = 21_915  # 2030-01-01
FILES_PER_DAY = 4  # and as many queues and routes
JOBS = ("slo_budget", "capacity", "poison", "starvation", "breaker_tuning")  # and those they need
PAUSE_S = 0.5  # between two measurements
MIB = 1024**2


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.pipeline.driver_memory")
    parser.add_argument("--days", type=int, default=8)
    parser.add_argument("--times", default="1,10,100", help="times the files and queues")
    parser.add_argument("--one", help="compute days of this lake, print the memory, and end")
    parser.add_argument("--last", action="store_true", help="only its last day, not the others")
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, is_last=args.last)))
        return 0
    print("| files | queues | seconds | most live Java heap | Python |\n|---|---|---|---|---|")
    for times in map(int, args.times.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            files = make(Path(folder), days=args.days, times=times)
            command = [sys.executable, "-m", "bench.pipeline.driver_memory", "--one", folder]
            subprocess.run(command, check=True, capture_output=True)
            ran = subprocess.run([*command, "--last"], check=True, capture_output=True, text=True)
        found = json.loads(ran.stdout.splitlines()[-1])
        print(
            f"| {files:,} | {FILES_PER_DAY * times:,} | {found['seconds']:.1f} "
            f"| {found['java_mib']} MiB | {found['python_mib']} MiB |",
            flush=True,
        )
    return 0


def make(folder: Path, *, days: int, times: int) -> int:
    """One message per file, each of another queue; returns the number of files."""
    count = FILES_PER_DAY * times
    for day in range(FIRST_DAY, FIRST_DAY + days):
        for number in range(1, count + 1):
            at = day * DAY + number * MINUTE // times
            ended = {"finished_at": at, "sent_at": at, "route": f"r-{number}"}
            _write(folder, HISTORY, day, number, ended)
        _write(folder, BACKLOG, day, 1, {"at": day * DAY})
    return days * (count + 1)


def _write(folder: Path, table: layout.LakeTable, day: int, number: int, given: Any) -> None:
    zero = {"text": f"q-{number}", "int": 0, "long": number, "bool": False}
    row = {c.name: None if c.is_nullable else zero[c.type] for c in table.columns}
    row |= {"outcome": "done"} if table is HISTORY else dict.fromkeys(_COUNTERS, 0)
    path = folder / layout.folder(table, layout.dt_of_day(day))
    path.mkdir(parents=True, exist_ok=True)
    name = layout.file_name(table, Range(number, number))
    made = pa.Table.from_pylist([row | given], schema_of(table))
    pq.write_table(made, path / name)


_COUNTERS = [c.name for c in BACKLOG.columns if c.name.endswith("_total")]


def measure(lake: str, *, is_last: bool) -> dict[str, Any]:
    """Compute the last day, or all others."""
    from penstock.domain.lake.pipeline_settings import PipelineSettings
    from penstock.pipeline.gates import GATES
    from penstock.pipeline.lake import SparkLake
    from penstock.pipeline.registry import jobs
    from penstock.pipeline.runner import DaySpan, JobRunner
    from penstock.pipeline.session import now_ms, open_session

    spark = open_session("local[2]", more={"spark.driver.memory": "2g"})
    tables = SparkLake(spark, lake)
    runner = JobRunner(tables, PipelineSettings(), clock=lambda: now_ms(spark), gates=GATES)
    *_, before, last = tables.files(HISTORY.name)
    span = DaySpan(last, last) if is_last else DaySpan(to_dt=before)
    started = time.perf_counter()
    with LiveHeap(spark) as heap:
        runner.run(jobs(JOBS), span)
    seconds = time.perf_counter() - started
    python = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"seconds": seconds, "java_mib": heap.most // MIB, "python_mib": python // MIB}


class LiveHeap:
    """The most memory that garbage collections have left, one after the other."""

    def __init__(self, spark: Any) -> None:
        self._heap = spark.sparkContext._jvm.java.lang.management.ManagementFactory
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.most = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        memory = self._heap.getMemoryMXBean()
        while not self._is_over.wait(PAUSE_S):
            memory.gc()
            self.most = max(self.most, memory.getHeapMemoryUsage().getUsed())


if __name__ == "__main__":
    sys.exit(main())
