"""Runs the loads against every peer, round by round.

All peers take their turn within a round, each on a fresh server, so that a busy minute of the
machine falls on all of them and not on one.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.driver import Outcome
from bench.fsync import Latency, fdatasync_times, summary
from bench.generator import Job, run_apart
from bench.install import MissingError
from bench.loads import Load
from bench.peers.base import Peer
from bench.processes import StartError
from bench.workspace import Workspace, is_listening

# Load per core above which other processes distort the figures.
BUSY = 0.25


@dataclass
class Results:
    outcomes: dict[tuple[str, str], list[Outcome]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    disk: list[Latency] = field(default_factory=list)

    def add(self, peer: str, load: str, outcome: Outcome) -> None:
        self.outcomes.setdefault((peer, load), []).append(outcome)


@dataclass(frozen=True)
class Plan:
    loads: Sequence[Load]
    rounds: int
    seconds: float
    connections: int


class Runner:
    def __init__(self, workspace: Workspace, plan: Plan, say: Callable[[str], None]) -> None:
        self._workspace = workspace
        self._plan = plan
        self._say = say
        self._queues = itertools.count(1)
        self.results = Results()

    def find(self, peers: Sequence[Peer], *, may_install: bool) -> list[Peer]:
        """Those of `peers` that can be measured here; the others are kept with their reason."""
        found = []
        for peer in peers:
            try:
                peer.find(may_install=may_install)
                found.append(peer)
            except MissingError as error:
                self.results.missing[peer.name] = str(error)
                self._say(f"{peer.name}: missing: {error}")
        ports = {peer.usual_port for peer in found if peer.usual_port}
        for port in sorted(port for port in ports if is_listening(port)):
            self.results.warnings.append(f"something listens on port {port} and may disturb us")
        return found

    def run(self, peers: Sequence[Peer]) -> None:
        for number in range(1, self._plan.rounds + 1):
            disk = summary(fdatasync_times(self._workspace.root, count=300))
            self.results.disk.append(disk)
            self._say(f"round {number}: fdatasync {disk.p50:.2f} ms p50, {disk.p99:.2f} ms p99")
            self._look_for_company(number)
            for peer in peers:
                self._visit(peer)

    def _look_for_company(self, number: int) -> None:
        """From the second round on the load is our own."""
        load = os.getloadavg()[0]
        if number == 1 and load > BUSY * (os.cpu_count() or 1):
            self.results.warnings.append(f"the machine was busy before we began: load {load:.1f}")

    def _visit(self, peer: Peer) -> None:
        folder = self._workspace.fresh(peer.name.replace(" ", "-"))
        try:
            endpoint = peer.start(folder)
            for load in self._plan.loads:
                if load.pace and peer.is_embedded:
                    continue  # nothing waits there
                job = Job(
                    client=peer.client,
                    endpoint=endpoint,
                    queue=f"bench-{next(self._queues)}",
                    load=load,
                    connections=min(self._plan.connections, peer.most_connections),
                    seconds=self._plan.seconds,
                    server_pids=peer.pids,
                )
                self._record(peer, load, run_apart(job))
        except StartError as error:
            self.results.missing.setdefault(peer.name, f"did not start: {error}")
            self._say(f"{peer.name}: did not start: {error}")
        finally:
            peer.stop()
            self._workspace.drop(folder)

    def _record(self, peer: Peer, load: Load, outcome: Outcome) -> None:
        self.results.add(peer.name, load.name, outcome)
        figure = f"invalid: {outcome.error}" if outcome.error else f"{outcome.rate:,.0f}/s"
        notes = (
            f", {outcome.p50_ms:.2f} / {outcome.p99_ms:.2f} ms, {outcome.cpu_us:.0f} µs of CPU each"
            f" (generator at {outcome.cpu_share:.0%} of a core)"
        )
        drained = " (drained)" if outcome.is_drained else ""
        self._say(f"  {peer.name:24} {load.name:10} {figure}{notes}{drained}")
