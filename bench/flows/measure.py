"""Three questions to each framework, one worker process each time.

How many chains of ten a second, and how many groups of 100 with a callback, does it run out of a
backlog, and what does a job of them cost in processor time of its worker and its store; and at ten
chains a second, how long is it from the call that enqueues a chain to its last job?
"""

from __future__ import annotations

import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench import table
from bench.cpu import cpu_seconds
from bench.flows.frameworks import FLOW_FRAMEWORKS, FlowFramework
from bench.fsync import Latency, summary
from bench.install import MissingError
from bench.jobs.board import Board
from bench.jobs.measure import produce, start_worker, wait_for, words
from bench.processes import StartError
from bench.workspace import Workspace

CHAIN, GROUP = 10, 100
PER_SECOND = 10
PACED = 100
WARM_UP = 5
_CHAINS, _GROUPS = "enqueue_chain", "enqueue_group"


@dataclass
class Run:
    """Flows per second, and processor time of a job."""

    rates: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)


@dataclass
class MeasuredFlows:
    chains: Run = field(default_factory=Run)
    groups: Run = field(default_factory=Run)
    latency: Latency | None = None
    trouble: str = ""


def measure(
    workspace: Workspace,
    say: Callable[[str], None],
    *,
    rounds: int,
    share: float = 1.0,
    may_install: bool = True,
    only: Callable[[str], bool] = lambda name: True,
) -> dict[str, MeasuredFlows]:
    """`share`: of the usual number of flows.  Round by round, so that all meet the same machine."""
    found = {made.name: made for made in (make() for make in FLOW_FRAMEWORKS) if only(made.name)}
    results = {name: MeasuredFlows() for name in found}
    for name, framework in list(found.items()):
        try:
            framework.find(may_install=may_install)
        except MissingError as error:
            results[name].trouble = f"missing: {error}"
            del found[name]
    for number in range(rounds):
        for name, framework in found.items():
            say(f"flows, round {number + 1}: {name}")
            is_last = number == rounds - 1
            _round(framework, workspace, results[name], share=share, with_pace=is_last)
    return results


def _round(
    framework: FlowFramework,
    workspace: Workspace,
    result: MeasuredFlows,
    *,
    share: float,
    with_pace: bool,
) -> None:
    folder = workspace.fresh("flows")
    try:
        url = framework.start(folder)
        produce(framework, url, folder, "prepare")
        chains, groups = (int(n * share) for n in (framework.chains, framework.groups))
        _drain(framework, url, folder, _CHAINS, max(chains, 2), CHAIN, CHAIN, result.chains)
        if framework.groups:
            jobs = GROUP + 1
            _drain(framework, url, folder, _GROUPS, max(groups, 2), GROUP, jobs, result.groups)
        if with_pace:
            result.latency = _paced(framework, url, folder, max(int(PACED * share), WARM_UP))
    except (StartError, subprocess.CalledProcessError, AssertionError) as error:
        result.trouble = words(error)
    finally:
        framework.stop()
        workspace.drop(folder)


def _drain(
    framework: FlowFramework,
    url: str,
    folder: Path,
    what: str,
    count: int,
    size: int,
    jobs: int,
    run: Run,
) -> None:
    """From the first job that ran to the last."""
    rows = count * jobs
    board = Board.make(folder / "board", rows)
    produce(framework, url, folder, "flows", what, count, size, jobs)
    worker = start_worker(framework, url, folder)
    pids = [worker.pid, *framework.servers]
    try:
        wait_for(board, 1, worker)
        ran_before, cpu_before = len(board.ran_at()), cpu_seconds(*pids)
        wait_for(board, rows, worker)
        cpu = cpu_seconds(*pids) - cpu_before
    finally:
        worker.stop()
    ran = sorted(board.ran_at())
    assert len(ran) == rows, f"{len(ran)} of {rows} jobs ran: {worker.end_of_log()}"
    run.rates.append(count / ((ran[-1] - ran[0]) / 1e9))
    run.cpu_us.append(cpu * 1e6 / (rows - ran_before))


def _paced(framework: FlowFramework, url: str, folder: Path, count: int) -> Latency:
    board = Board.make(folder / "board", (WARM_UP + count) * CHAIN)
    worker = start_worker(framework, url, folder)
    try:
        produce(framework, url, folder, "pace_flows", 0, WARM_UP, CHAIN, PER_SECOND)
        wait_for(board, WARM_UP * CHAIN, worker)
        produce(framework, url, folder, "pace_flows", WARM_UP, count, CHAIN, PER_SECOND)
        wait_for(board, (WARM_UP + count) * CHAIN, worker)
    finally:
        worker.stop()
    waits = board.waits()[WARM_UP:]  # only the last job of a chain was noted as sent
    assert len(waits) == count, f"{len(waits)} of {count} paced chains ran to their end"
    return summary(waits)


def text(results: dict[str, MeasuredFlows]) -> str:
    ours = next(iter(results.values()))
    heading = ["flows, one worker process", "chains of 10/s", "CPU a job", "groups of 100/s"]
    rows = [[*heading, "CPU a job", "chain p50", "chain p99"]]
    rows += [[name, *_cells(one, ours)] for name, one in results.items()]
    notes = [f"{made.name}: {made.note}" for made in FLOW_FRAMEWORKS if made.name in results]
    troubles = [f"{name}: {one.trouble}" for name, one in results.items() if one.trouble]
    note = (
        f"chain p50, p99: from the call that enqueues a chain to its last job, at {PER_SECOND} "
        "chains a second; CPU: of the worker and the store's server"
    )
    return "\n".join([table.aligned(rows), "", note, *notes, *troubles])


def _cells(one: MeasuredFlows, ours: MeasuredFlows) -> Sequence[str]:
    cells = [*_run_cells(one.chains, ours.chains), *_run_cells(one.groups, ours.groups)]
    if one.latency is None:
        return [*cells, "-", "-"]
    return [*cells, f"{one.latency.p50:.0f} ms", f"{one.latency.p99:.0f} ms"]


def _rate_text(rates: Sequence[float]) -> str:
    """With a decimal where a whole number would say nothing."""
    median = statistics.median(rates)
    return table.rate_text(rates) if median >= 10 else f"{median:.1f}/s"


def _run_cells(run: Run, ours: Run) -> list[str]:
    if not run.rates:
        return ["-", "-"]
    cpu = statistics.median(run.cpu_us)
    if not ours.rates:
        return [_rate_text(run.rates), f"{cpu:,.0f} µs"]
    rate_ratio = statistics.median(run.rates) / statistics.median(ours.rates)
    cpu_ratio = cpu / max(statistics.median(ours.cpu_us), 1e-9)
    return [
        f"{_rate_text(run.rates)} {rate_ratio:.2f}x",
        f"{cpu:,.0f} µs {cpu_ratio:.1f}x",
    ]
