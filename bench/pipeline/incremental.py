"""`python -m bench.pipeline.incremental [--messages 100000] [--days 365] [--rounds 3]`

A run of all jobs over one new day: of a lake that has nothing else, and of one with a year of
computed days before it.  Both take the same day in turn, in one Spark session.

The days of the year are copies of one day, with other instants and numbers: in the lake (in as many
files as an archiver writes that runs every ten minutes), in the computed tables and in the log of
runs.  Of computed days that no job looks back at only names, sizes and times of change matter, so
these share the files of another day.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.domain.lake import layout
from penstock.domain.lake.layout import ATTEMPTS, BACKLOG, FACTS, HISTORY, LakeTable, Range
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.limits import DAY, SECOND

FIRST_MIDNIGHT = 21_915 * DAY  # 2030-01-01
LAKE_TABLES = (HISTORY, ATTEMPTS, FACTS, BACKLOG)
NUMBERS_OF_A_DAY = 100_000_000  # more than a day has
# Numbers that continue from day to day; those of history and attempts begin anew.
CONTINUED = ("message_no", FACTS.number, BACKLOG.number)
LOOKED_BACK = 30  # no job reads earlier days
AIM = 1.3


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.pipeline.incremental")
    parser.add_argument("--messages", type=int, default=100_000, help="of a day")
    parser.add_argument("--days", type=int, default=365, help="before the new one")
    parser.add_argument("--files", type=int, default=144, help="of a day and table of the lake")
    parser.add_argument("--rounds", type=int, default=3, help="after one that warms up; default 3")
    parser.add_argument("--folder", default=".bench/pipeline/incremental", help="for the lakes")
    parser.add_argument("--backtest-step-s", type=int, default=600, help="the autoscaler decides")
    args = parser.parse_args()
    folder = Path(args.folder).absolute()
    shutil.rmtree(folder, ignore_errors=True)
    pipeline = Pipeline(backtest_step_ms=args.backtest_step_s * SECOND)
    _print(f"start-up: {pipeline.start_s:.1f} s")
    try:
        measure(
            pipeline,
            folder,
            messages=args.messages,
            days=args.days,
            files=args.files,
            rounds=args.rounds,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def measure(
    pipeline: Pipeline, folder: Path, *, messages: int, days: int, files: int, rounds: int
) -> dict[str, float]:
    """Seconds of a run over a new day, by lake."""
    from penstock.pipeline.demo.make import make

    base, year = folder / "base", folder / "year"
    make(base, messages=messages, days=1, first_midnight=FIRST_MIDNIGHT)
    pipeline.run(base)
    _print(f"copying {days} days")
    for day in range(days, 0, -1):
        if day > days - LOOKED_BACK:
            copy_lake(base, year, day, files=files)
            copy_tables(base, year, day)
        else:
            link_day(year, days, to=day)
    pipeline.record(year)
    found: dict[str, list[float]] = {"one day": [], "a year": []}
    for turn in range(rounds + 1):
        day = days + 1 + turn
        one = folder / f"one-{turn}"
        for lake in (one, year):
            copy_lake(base, lake, day, files=files)
        lakes = {"one day": one, "a year": year}
        for name in sorted(lakes, reverse=turn % 2 == 1):
            seconds = pipeline.run(lakes[name], only=_dt(day))
            _print(f"{name:8} {seconds:6.1f} s")
            if turn:
                found[name].append(seconds)
    medians = {name: median(seconds) for name, seconds in found.items()}
    ratio = medians["a year"] / medians["one day"]
    print("| days before | a run over one new day |\n|---|---|")
    print(f"| 0 | {medians['one day']:.1f} s |")
    print(f"| {days} | {medians['a year']:.1f} s, {ratio:.2f}x (aim: at most {AIM}x) |")
    return medians


class Pipeline:
    """One Spark session for all runs."""

    def __init__(self, *, backtest_step_ms: int) -> None:
        from penstock.pipeline.session import open_session

        began = time.perf_counter()
        self._spark = open_session()
        self.start_s = time.perf_counter() - began
        self._settings = PipelineSettings(backtest_interval_ms=backtest_step_ms)

    def run(self, folder: Path, *, only: str | None = None) -> float:
        """Returns the seconds; `only`: the one day that must be computed."""
        from penstock.pipeline.registry import jobs
        from penstock.pipeline.runner import DaySpan

        began = time.perf_counter()
        runs = self._runner(folder).run(jobs(), DaySpan())
        seconds = time.perf_counter() - began
        assert {run.status for run in runs} == {"done"}, runs
        assert only is None or {run.dt for run in runs} == {only}, {run.dt for run in runs}
        assert len({run.job for run in runs}) == len(jobs())
        return seconds

    def record(self, folder: Path) -> None:
        """As if each day had been computed from the files that are there."""
        from penstock.pipeline.lake import SparkLake
        from penstock.pipeline.registry import jobs
        from penstock.pipeline.runs import JobRun, RunLog, RunStatus

        runner = self._runner(folder)
        runs = []
        for job in jobs():
            inputs = runner.fingerprints(job)
            outputs = runner.written(job, inputs)
            runs += [
                JobRun(
                    job=job.name,
                    dt=day,
                    status=RunStatus.DONE,
                    started_at=0,
                    ended_at=0,
                    inputs=inputs[day],
                    rows_in={},
                    rows_out={},
                    outputs=outputs[day],
                )
                for day in inputs
            ]
        RunLog(self._spark, SparkLake(self._spark, str(folder))).add(runs)

    def _runner(self, folder: Path) -> Any:
        from penstock.pipeline.gates import GATES
        from penstock.pipeline.lake import SparkLake
        from penstock.pipeline.runner import JobRunner
        from penstock.pipeline.session import now_ms

        return JobRunner(
            SparkLake(self._spark, str(folder)),
            self._settings,
            clock=lambda: now_ms(self._spark),
            gates=GATES,
        )


def copy_lake(base: Path, to: Path, day: int, *, files: int) -> None:
    """The first day of the base as another day, in so many files of each table."""
    for table in LAKE_TABLES:
        for file in _files(base / table.name, 0):
            rows = shift(pq.ParquetFile(file).read(), day)
            size = -(-rows.num_rows // files)
            for begin in range(0, rows.num_rows, size):
                part = rows.slice(begin, size)
                _write(part, to / layout.folder(table, _dt(day)) / _name(table, part))


def copy_tables(base: Path, to: Path, day: int) -> None:
    for folder in sorted((base / "derived").iterdir()):
        for file in _files(folder, 0):
            target = to / "derived" / folder.name / f"dt={_dt(day)}" / file.name
            _write(shift(pq.ParquetFile(file).read(), day), target)


def link_day(lake: Path, day: int, *, to: int) -> None:
    """All files of a day also as those of another day."""
    for folder in sorted([*lake.iterdir(), *(lake / "derived").iterdir()]):
        for file in _files(folder, day):
            target = folder / f"dt={_dt(to)}" / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(file, target)


def shift(rows: pa.Table, day: int) -> pa.Table:
    """The same rows, that many days later."""
    for place, name in enumerate(rows.column_names):
        by = 0
        if name == "at" or name.endswith("_at"):
            by = day * DAY
        elif name in CONTINUED:
            by = day * NUMBERS_OF_A_DAY
        if by:
            rows = rows.set_column(place, rows.field(place), pc.add(rows.column(place), by))
    return rows


def _files(table: Path, day: int) -> Iterator[Path]:
    yield from sorted((table / f"dt={_dt(day)}").glob("*.parquet"))


def _name(table: LakeTable, rows: pa.Table) -> str:
    numbers = pc.min_max(rows.column(table.number)).as_py()
    return layout.file_name(table, Range(numbers["min"], numbers["max"]))


def _write(rows: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, compression="zstd")


def _dt(day: int) -> str:
    return layout.dt_of(FIRST_MIDNIGHT + day * DAY)


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
