"""`python -m bench.pipeline [--messages 1600000,6500000,16000000] [--rounds 3] [--json FILE]`"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.cpu import cpu_seconds
from bench.pipeline.engine import ENGINES
from penstock.domain.limits import DAY

SIZES = "1600000,6500000,16000000"
DAYS = 10
FIRST_MIDNIGHT = 21_915 * DAY  # 2030-01-01
BASELINE = "duckdb"


class Measured(NamedTuple):
    seconds: float
    cpu: float


class Started(NamedTuple):
    """An engine that is ready for runs."""

    process: subprocess.Popen[str]
    seconds: float  # until it was ready, which is not part of any run


def main() -> int:
    args = _arguments()
    sizes = [int(size) for size in args.messages.split(",")]
    names = [name for name in ENGINES if any(part in name for part in args.only.split(","))]
    folder = Path(args.folder).absolute()
    figures: dict[int, dict[str, list[Measured]]] = {}
    engines = {name: _start(name) for name in names}
    try:
        for size in sizes:
            lake = _lake(folder, size)
            figures[size] = {name: [] for name in names}
            for turn in range(args.rounds + 1):
                for name, engine in engines.items():
                    found = _ask(engine.process, lake, folder / "out")
                    # The first one warms up: Spark compiles, files come into memory.
                    if turn:
                        figures[size][name].append(found)
                    _tell(f"{size:>11,} {name:20} {found.seconds:7.1f} s, cpu {found.cpu:7.1f} s")
    finally:
        for engine in engines.values():
            engine.process.terminate()
            engine.process.wait()
        shutil.rmtree(folder / "out", ignore_errors=True)
    print(report(figures, {name: engine.seconds for name, engine in engines.items()}))
    if args.json:
        Path(args.json).write_text(json.dumps(figures, indent=1))
    return 0


def report(
    figures: dict[int, dict[str, list[Measured]]], started: dict[str, float] | None = None
) -> str:
    """Medians, ratios to DuckDB of the same run, and growth from one size to the next."""
    ready = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in (started or {}).items())
    lines = [
        "",
        *([f"Start-up, not included: {ready}", ""] if ready else []),
        "| messages | engine | seconds | cpu | to DuckDB | growth |",
        "|---|---|---|---|---|---|",
    ]
    before: dict[str, tuple[int, float]] = {}
    for size, engines in figures.items():
        base = engines.get(BASELINE)
        for name, found in engines.items():
            seconds, cpu = median(m.seconds for m in found), median(m.cpu for m in found)
            ratio = f"{seconds / median(m.seconds for m in base):.2f}x" if base else ""
            growth = ""
            if name in before:
                then, took = before[name]
                growth = f"{size / then:.1f}x the messages, {seconds / took:.1f}x the time"
            before[name] = (size, seconds)
            lines.append(f"| {size:,} | {name} | {seconds:.1f} | {cpu:.1f} | {ratio} | {growth} |")
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.pipeline")
    parser.add_argument("--messages", default=SIZES, help=f"sizes; default {SIZES}")
    parser.add_argument("--rounds", type=int, default=3, help="after one that warms up; default 3")
    parser.add_argument("--only", default="spark,duckdb,polars", help="engines, by parts of names")
    parser.add_argument("--folder", default=".bench/pipeline", help="for lakes and tables")
    parser.add_argument("--json", help="a file for every measurement")
    return parser.parse_args()


def _lake(folder: Path, messages: int) -> Path:
    """Written once and kept: the same arguments give the same lake."""
    from penstock.pipeline.demo.make import make

    lake = folder / f"lake-{messages}"
    if not lake.exists():
        _tell(f"making a past of {messages:,} messages")
        under_way = folder / "under-way"
        shutil.rmtree(under_way, ignore_errors=True)
        make(under_way, messages=messages, days=DAYS, first_midnight=FIRST_MIDNIGHT)
        under_way.rename(lake)
    return lake


def _start(name: str) -> Started:
    _tell(f"starting {name}")
    began = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", "bench.pipeline.engine", name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    _heard(child)
    return Started(child, time.perf_counter() - began)


def _ask(child: subprocess.Popen[str], lake: Path, out: Path) -> Measured:
    before = cpu_seconds(child.pid)
    assert child.stdin is not None
    child.stdin.write(json.dumps([str(lake), str(out)]) + "\n")
    child.stdin.flush()
    result = _heard(child)
    return Measured(result["seconds"], cpu_seconds(child.pid) - before)


def _heard(child: subprocess.Popen[str]) -> dict[str, float]:
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        raise SystemExit("an engine has ended: see above")
    found: dict[str, float] = json.loads(line)
    return found


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
