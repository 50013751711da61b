"""`python -m bench.pipeline.skew [--messages 1000000] [--kinds 1000000] [--queues 10000]`

All jobs over a day in which one queue and route has 95 % of the messages, and the others are spread
over many queues; every message has one of many kinds.  Prints the time of each job, and the most
memory of Java and of a Python process meanwhile.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.cpu import resident_bytes
from penstock.domain.lake import layout
from penstock.domain.lake.layout import ATTEMPTS, BACKLOG, HISTORY, LakeTable, Range
from penstock.domain.limits import DAY, MINUTE, SECOND
from penstock.outbound.lake_files import schema_of

MIDNIGHT = 21_915 * DAY  # 2030-01-01
BIG_SHARE = 0.95
FAILING = 50  # one of so many messages fails once
MIB = 1024**2
PAUSE_S = 0.2


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.pipeline.skew")
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--kinds", type=int, default=1_000_000)
    parser.add_argument("--queues", type=int, default=10_000)
    parser.add_argument("--backtest-step-s", type=int, default=600, help="the autoscaler decides")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), messages=args.messages, kinds=args.kinds, queues=args.queues)
        measure(folder, backtest_step_ms=args.backtest_step_s * SECOND)
    return 0


def make(folder: Path, *, messages: int, kinds: int, queues: int) -> None:
    """A lake of one day."""
    number = np.arange(1, messages + 1)
    is_big = number % 100 < BIG_SHARE * 100
    queue_no = np.where(is_big, 1, 2 + number // 5 % max(1, queues - 1))
    at = MIDNIGHT + (number * (DAY // (messages + 1)))
    named = {
        "id": _texts("m", number),
        "queue": _texts("q", queue_no),
        "kind": _texts("k", number % kinds),
        "entity_id": _texts("e", number % kinds),
        "route": _texts("/r", queue_no),
    }
    times = {"sent_at": at - 2 * SECOND, "due_at": at, "finished_at": at}
    leases = {"first_leased_at": at - SECOND, "leased_at": at - SECOND}
    common = named | {"message_no": number, "queue_no": queue_no}
    one = np.ones(messages, dtype=np.int64)
    ended = common | times | leases | {"history_no": number, "attempts": one, "lease_no": one}
    _write(folder, HISTORY, ended, outcome="done")
    fails = number % FAILING == 0
    attempts = {name: _only(values, fails) for name, values in common.items()}
    attempts |= {"attempt_no": number[fails], "leased_at": at[fails] - SECOND}
    _write(
        folder,
        ATTEMPTS,
        attempts | {"ended_at": at[fails], "lease_no": one[fails]},
        outcome="failed",
    )
    samples = np.arange(1, queues + 1)
    backlog = {"sample_no": samples, "queue_no": samples, "queue": _texts("q", samples)}
    _write(folder, BACKLOG, backlog | {"at": np.full(queues, MIDNIGHT + MINUTE)})


def _texts(prefix: str, numbers: Any) -> pa.Array:
    return pa.array([f"{prefix}-{number}" for number in numbers.tolist()])


def _only(values: Any, mask: Any) -> Any:
    return values.filter(pa.array(mask)) if isinstance(values, pa.Array) else values[mask]


def _write(folder: Path, table: LakeTable, given: dict[str, Any], *, outcome: str = "") -> None:
    schema = schema_of(table)
    rows = len(given[table.number])
    zero = {"text": outcome, "int": 0, "long": 0, "bool": False}
    columns = []
    for column in table.columns:
        kind = schema.field(column.name).type
        if column.name in given:
            columns.append(pa.array(given[column.name]).cast(kind))
        else:
            value = None if column.is_nullable else zero[column.type]
            columns.append(pa.repeat(pa.scalar(value, kind), rows))
    path = folder / layout.folder(table, layout.dt_of(MIDNIGHT))
    path.mkdir(parents=True, exist_ok=True)
    made = pa.Table.from_arrays(columns, schema=schema)
    pq.write_table(made, path / layout.file_name(table, Range(1, rows)))


def measure(lake: str, *, backtest_step_ms: int) -> None:
    from penstock.domain.lake.pipeline_settings import PipelineSettings
    from penstock.pipeline.gates import GATES
    from penstock.pipeline.lake import SparkLake
    from penstock.pipeline.registry import jobs
    from penstock.pipeline.runner import DaySpan, JobRunner
    from penstock.pipeline.session import now_ms, open_session

    spark = open_session("local[2]", more={"spark.driver.memory": "2g"})
    settings = PipelineSettings(backtest_interval_ms=backtest_step_ms)
    tables = SparkLake(spark, lake)
    runner = JobRunner(tables, settings, clock=lambda: now_ms(spark), gates=GATES)
    print("| job | seconds | Java | largest Python process |\n|---|---|---|---|")
    for job in jobs():
        started = time.perf_counter()
        with Memory() as memory:
            [run] = runner.run([job], DaySpan())
        seconds = time.perf_counter() - started
        assert run.status == "done", run.note
        print(
            f"| {job.name} | {seconds:.1f} | {memory.java // MIB} MiB "
            f"| {memory.python // MIB} MiB |",
            flush=True,
        )


class Memory:
    """The most resident memory of the largest process below this one, by kind."""

    def __init__(self) -> None:
        self.java = self.python = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(PAUSE_S):
            for pid, size in resident_bytes(os.getpid()).items():
                name = _name(pid)
                if name == "java":
                    self.java = max(self.java, size)
                elif name.startswith("python") and pid != os.getpid():
                    self.python = max(self.python, size)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:  # it has ended meanwhile
        return ""


if __name__ == "__main__":
    sys.exit(main())
