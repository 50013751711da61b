"""One engine in a process of its own: runs when a line comes in, and reports how long it took."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol


class Engine(Protocol):
    def run(self, lake: Path, out: Path) -> None: ...


def _spark() -> Engine:
    from bench.pipeline.spark_engine import SparkEngine

    return SparkEngine()


def _duck_histograms() -> Engine:
    from bench.pipeline.duck_engine import DuckEngine

    return DuckEngine(with_histograms=True)


def _duck() -> Engine:
    from bench.pipeline.duck_engine import DuckEngine

    return DuckEngine(with_histograms=False)


def _polars() -> Engine:
    from bench.pipeline.polars_engine import PolarsEngine

    return PolarsEngine()


ENGINES: dict[str, Callable[[], Engine]] = {
    "spark": _spark,
    "duckdb": _duck,
    "duckdb, histograms": _duck_histograms,
    "polars": _polars,
}


def main(name: str) -> None:
    engine = ENGINES[name]()
    print(json.dumps({"is_ready": True}), flush=True)
    for line in sys.stdin:
        lake, out = map(Path, json.loads(line))
        shutil.rmtree(out, ignore_errors=True)
        started = time.perf_counter()
        engine.run(lake, out)
        print(json.dumps({"seconds": time.perf_counter() - started}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
