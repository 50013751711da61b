"""Several processes on one SQLite file: how much do they get done together, beside one alone?

Every process embeds Penstock: no HTTP, group commit, every send and completion on the disk before
its answer.  A writer has to wait for the others; what it costs to take turns is what shows here.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import IO, Any

from bench.workspace import Workspace

COUNTS = (1, 2, 4, 8)
LOADS = ("send", "cycle")
CLIENTS = 32  # that wait for their answers, in each process
AIM = 1.0  # so much of the rate of one process, whatever the number
_PATIENCE = 120.0


@dataclass
class SideBySide:
    clients: int
    rates: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    shares: dict[tuple[str, int], list[float]] = field(default_factory=dict)  # of the slowest one
    longest: dict[tuple[str, int], list[float]] = field(default_factory=dict)  # ms for one step
    errors: Counter[str] = field(default_factory=Counter)

    def rate(self, load: str, count: int) -> float:
        return statistics.median(self.rates[load, count])

    def ratio(self, load: str, count: int) -> float:
        return self.rate(load, count) / self.rate(load, COUNTS[0])

    def least(self, load: str, count: int) -> float:
        """What the slowest of them got, of its fair share."""
        return statistics.median(self.shares[load, count]) * count

    def longest_ms(self, load: str, count: int) -> float:
        return statistics.median(self.longest[load, count])

    def spread(self, load: str, count: int) -> float:
        rates = self.rates[load, count]
        return (max(rates) - min(rates)) / 2 / self.rate(load, count)

    def is_met(self, load: str, count: int) -> bool:
        return self.ratio(load, count) >= AIM and not self.errors

    def as_json(self) -> dict[str, object]:
        rates = {f"{load} {count}": rates for (load, count), rates in self.rates.items()}
        shares = {f"{load} {count}": found for (load, count), found in self.shares.items()}
        longest = {f"{load} {count}": found for (load, count), found in self.longest.items()}
        return {
            "clients": self.clients,
            "rates": rates,
            "least_share": shares,
            "longest_ms": longest,
            "errors": dict(self.errors),
        }


def measure(workspace: Workspace, *, rounds: int, seconds: float) -> SideBySide:
    """Every number of processes in each round, so that a busy minute falls on all of them."""
    found = SideBySide(CLIENTS)
    for _ in range(rounds):
        for load in LOADS:
            for count in COUNTS:
                results = _together(workspace, load, count, seconds)
                rates = [one["done"] / one["took"] for one in results]
                found.rates.setdefault((load, count), []).append(sum(rates))
                found.shares.setdefault((load, count), []).append(min(rates) / sum(rates))
                slowest = max(1e3 * one["longest"] for one in results)
                found.longest.setdefault((load, count), []).append(slowest)
                for one in results:
                    found.errors.update(one["errors"])
    return found


def _together(workspace: Workspace, load: str, count: int, seconds: float) -> list[Any]:
    """Opens `count` processes on a fresh file at the same time; returns the results of each."""
    folder = workspace.fresh(f"beside-{load}-{count}")
    command = [sys.executable, "-m", "bench.beside", str(folder), load, str(CLIENTS), str(seconds)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    try:
        for process in processes:
            _line(process.stdout)
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        results = [json.loads(_line(process.stdout)) for process in processes]
        for process in processes:
            process.communicate(timeout=_PATIENCE)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        workspace.drop(folder)
    return results


def _line(stream: IO[str] | None) -> str:
    assert stream is not None
    line = stream.readline()
    if not line:
        raise RuntimeError("a process of `bench.beside` ended before its time")
    return line
