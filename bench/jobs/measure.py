"""Two questions to each framework, one worker process each time.

How many jobs a second does it run out of a backlog; and at 500 jobs a second, how long is it from
the call that enqueues to the handler?
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench import table
from bench.fsync import Latency, summary
from bench.install import MissingError
from bench.jobs.board import VARIABLE, Board
from bench.jobs.frameworks import FRAMEWORKS, Framework
from bench.processes import Server, StartError
from bench.workspace import Workspace

PACE = 500
PACE_SECONDS = 4.0
WARM_UP = 50
WITHIN = 120.0
STILL = 3.0  # seconds without a job that ran: the rest does not come
_HERE = Path(__file__).parents[2]


@dataclass
class Measured:
    rates: list[float] = field(default_factory=list)
    start: Latency | None = None
    trouble: str = ""


def measure(
    workspace: Workspace,
    say: Callable[[str], None],
    *,
    rounds: int,
    share: float = 1.0,
    may_install: bool = True,
    only: Callable[[str], bool] = lambda name: True,
) -> dict[str, Measured]:
    """`share`: of the usual number of jobs.  Round by round, so that all meet the same machine."""
    found = {made.name: made for made in (make() for make in FRAMEWORKS) if only(made.name)}
    results = {name: Measured() for name in found}
    for name, framework in list(found.items()):
        try:
            framework.find(may_install=may_install)
        except MissingError as error:
            results[name].trouble = f"missing: {error}"
            del found[name]
    for number in range(rounds):
        for name, framework in found.items():
            say(f"jobs, round {number + 1}: {name}")
            is_last = number == rounds - 1
            _round(framework, workspace, results[name], share=share, with_pace=is_last)
    return results


def _round(
    framework: Framework, workspace: Workspace, result: Measured, *, share: float, with_pace: bool
) -> None:
    folder = workspace.fresh("jobs")
    try:
        url = framework.start(folder)
        produce(framework, url, folder, "prepare")
        count = int(framework.jobs * share)
        result.rates.append(_drain(framework, url, folder, count))
        if with_pace:
            result.start = _paced(framework, url, folder, int(PACE * PACE_SECONDS * share))
    except (StartError, subprocess.CalledProcessError, AssertionError) as error:
        result.trouble = words(error)
    finally:
        framework.stop()
        workspace.drop(folder)


def _drain(framework: Framework, url: str, folder: Path, count: int) -> float:
    """Jobs per second, from the first that ran to the last."""
    board = Board.make(folder / "board", count)
    produce(framework, url, folder, "fill", count)
    worker = start_worker(framework, url, folder)
    try:
        wait_for(board, count, worker)
    finally:
        worker.stop()
    ran = sorted(board.ran_at())
    assert len(ran) == count, f"{len(ran)} of {count} jobs ran: {worker.end_of_log()}"
    return (count - 1) / ((ran[-1] - ran[0]) / 1e9)


def _paced(framework: Framework, url: str, folder: Path, count: int) -> Latency:
    board = Board.make(folder / "board", WARM_UP + count)
    worker = start_worker(framework, url, folder)
    try:
        produce(framework, url, folder, "pace", 0, WARM_UP, WARM_UP)
        wait_for(board, WARM_UP, worker)
        produce(framework, url, folder, "pace", WARM_UP, count, PACE)
        wait_for(board, WARM_UP + count, worker)
    finally:
        worker.stop()
    waits = board.waits()[WARM_UP:]
    assert len(waits) == count, f"{len(waits)} of {count} paced jobs ran"
    return summary(waits)


def wait_for(board: Board, count: int, worker: Server) -> None:
    """Wait until all have run, or nothing happens any more."""
    begin = last = time.monotonic()
    seen = 0
    while seen < count and time.monotonic() - begin < WITHIN and not worker.has_ended:
        time.sleep(0.05)
        now_seen = len(board.ran_at())
        if now_seen != seen:
            seen, last = now_seen, time.monotonic()
        elif seen and time.monotonic() - last > STILL:
            return


def start_worker(framework: Framework, url: str, folder: Path) -> Server:
    command = [url if word == "$BENCH_URL" else word for word in framework.worker()]
    return Server(command, folder=folder, env=_env(url, folder))


def produce(framework: Framework, url: str, folder: Path, *words: object) -> None:
    command = [sys.executable, "-m", "bench.jobs.producer", framework.app, *map(str, words)]
    subprocess.run(
        command, check=True, capture_output=True, cwd=folder, env=os.environ | _env(url, folder)
    )


def _env(url: str, folder: Path) -> dict[str, str]:
    paths = [str(_HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "BENCH_URL": url,
        VARIABLE: str(folder / "board"),
        "PYTHONPATH": os.pathsep.join(paths),
        "OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES",
    }


def words(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        lines = error.stderr.decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else str(error)
    return str(error)


def text(results: dict[str, Measured]) -> str:
    ours = next(iter(results.values()))
    base = statistics.median(ours.rates) if ours.rates else None
    rows = [["jobs, one worker process", "jobs/s", "start p50", "start p99"]]
    rows += [[name, *_cells(one, base)] for name, one in results.items()]
    notes = [f"{made.name}: {made.note}" for made in FRAMEWORKS if made.name in results]
    troubles = [f"{name}: {one.trouble}" for name, one in results.items() if one.trouble]
    note = f"start: from the call that enqueues to the handler, at {PACE} jobs a second"
    return "\n".join([table.aligned(rows), "", note, *notes, *troubles])


def _cells(one: Measured, base: float | None) -> Sequence[str]:
    rate = "-"
    if one.rates:
        ratio = f" {statistics.median(one.rates) / base:.2f}x" if base else ""
        rate = table.rate_text(one.rates) + ratio
    if one.start is None:
        return rate, "-", "-"
    return rate, f"{one.start.p50:.1f} ms", f"{one.start.p99:.1f} ms"
