"""What one durable write costs on this disk: the yardstick beside which the rates are read."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.payload import BODY


@dataclass(frozen=True)
class Latency:
    """Milliseconds."""

    p50: float
    p99: float
    worst: float
    samples: int


def summary(seconds: Sequence[float]) -> Latency:
    ordered = sorted(seconds)
    return Latency(
        p50=1e3 * percentile(ordered, 0.50),
        p99=1e3 * percentile(ordered, 0.99),
        worst=1e3 * ordered[-1],
        samples=len(ordered),
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def fdatasync_times(folder: Path, *, count: int, interval: float = 0.0) -> list[float]:
    """Appends one body and syncs it, `count` times, one every `interval` seconds if given."""
    path = folder / "fdatasync"
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        return [_one(file, interval) for _ in range(count)]
    finally:
        os.close(file)
        path.unlink()


def _one(file: int, interval: float) -> float:
    started = time.perf_counter()
    os.write(file, BODY)
    os.fdatasync(file)
    took = time.perf_counter() - started
    if interval > took:
        time.sleep(interval - took)
    return took
