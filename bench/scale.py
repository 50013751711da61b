"""Does a claim stay as fast with a million messages, a million delayed ones, ten thousand queues?

Each question runs two of our servers, a small one and a big one, and measures them in turn, so that
a busy minute falls on both. Memory and start time are taken from the one with a million waiting.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from bench.apart import ApartError, call_apart
from bench.clients.base import Endpoint
from bench.driver import Outcome
from bench.install import MissingError
from bench.peers.penstock import Penstock
from bench.processes import StartError
from bench.scale_server import Running, running
from bench.workspace import Workspace

FEW = 1_000
HOUR_MS = 3_600_000
BATCHES = (1_000, 100, 10)
PATIENCE = 900.0
# Ten at a time from fewer connections: 64 would hold most of the small backlog in their hands.
WAYS = ((1, 64), (10, 16))


@dataclass(frozen=True)
class Finding:
    """One line of the scale table."""

    question: str
    small: str
    big: str
    aim: str
    is_met: bool


@dataclass(frozen=True)
class Size:
    messages: int
    queues: int
    rounds: int
    seconds: float


class Scale:
    def __init__(
        self,
        workspace: Workspace,
        size: Size,
        say: Callable[[str], None],
        make: type[Penstock] = Penstock,
    ) -> None:
        self._workspace = workspace
        self._size = size
        self._say = say
        self._make = make
        self.findings: list[Finding] = []
        self.failures: list[str] = []

    def run(self) -> None:
        for part in (self._deep_backlog, self._many_delayed, self._many_queues):
            try:
                part()
            except (ApartError, MissingError, StartError) as error:
                self.failures.append(f"{part.__name__.strip('_')}: {error}")
                self._say(f"  invalid: {error}")

    def _deep_backlog(self) -> None:
        many = self._size.messages
        with self._server() as small, self._server() as big:
            self._fill(small, FEW)
            self._fill(big, many)
            self._note_memory(big, f"resident memory with {many:,} waiting")
            self._compare(f"{FEW:,} or {many:,} waiting", small, big)
            self._note_memory(big, "the same after it was consumed from")
            seconds = big.restart()
            _claim_one(big.endpoint)
            self._note(f"start with {many:,} waiting", f"{seconds:.2f} s", "< 5 s", seconds < 5)

    def _many_delayed(self) -> None:
        many = self._size.messages
        with self._server() as small, self._server() as big:
            self._fill(small, FEW)
            self._fill(big, FEW)
            self._fill(big, many, delay_ms=HOUR_MS)
            self._compare(f"{FEW:,} waiting, alone or beside {many:,} delayed", small, big)

    def _many_queues(self) -> None:
        with self._server() as small, self._server() as big:
            for server, queues in ((small, 10), (big, self._size.queues)):
                self._fill(server, FEW)
                job = {"endpoint": server.endpoint, "first": 1, "count": queues - 1}
                _apart("make_queues", job)
            self._compare(f"one hot queue of 10 or of {self._size.queues:,}", small, big)

    def _compare(self, question: str, small: Running, big: Running) -> None:
        for batch, connections in WAYS:
            rates: tuple[list[float], list[float]] = ([], [])
            for _ in range(self._size.rounds):
                for server, kept in zip((small, big), rates, strict=True):
                    kept.append(self._rate(server, batch, connections))
            few, many = (statistics.median(kept) for kept in rates)
            self._add(
                Finding(
                    question=f"{question}; claim and complete {batch}",
                    small=_figure(rates[0]),
                    big=f"{_figure(rates[1])} {many / few:.2f}x",
                    aim="≥ 0.80x",
                    is_met=many >= 0.8 * few,
                )
            )

    def _rate(self, server: Running, batch: int, connections: int) -> float:
        job = {
            "endpoint": server.endpoint,
            "queue": "hot",
            "batch": batch,
            "connections": connections,
            "seconds": self._size.seconds,
        }
        outcome = Outcome(**_apart("consume", job))
        if outcome.error:
            raise ApartError(outcome.error)
        return outcome.rate

    def _fill(self, server: Running, count: int, *, delay_ms: int = 0) -> None:
        """In the largest batches that the server takes."""
        job = {"endpoint": server.endpoint, "queue": "hot", "count": count, "delay_ms": delay_ms}
        for batch in BATCHES:
            try:
                _apart("fill", {**job, "batch": batch})
                return
            except ApartError as error:
                if batch == BATCHES[-1] or not _is_refused(str(error)):
                    raise

    def _note_memory(self, server: Running, question: str) -> None:
        resident = server.peer.resident_mb()
        self._note(question, f"{resident:.0f} MB", "< 200 MB", resident < 200)

    def _note(self, question: str, value: str, aim: str, is_met: bool) -> None:
        self._add(Finding(question, "", value, aim, is_met))

    def _add(self, finding: Finding) -> None:
        self.findings.append(finding)
        self._say(f"  {finding.question}: {finding.small} {finding.big} (aim {finding.aim})")

    def _server(self) -> AbstractContextManager[Running]:
        return running(self._make(), self._workspace)


def _claim_one(endpoint: Endpoint) -> None:
    """A server that says it is ready must also find a message."""
    job = {"endpoint": endpoint, "queue": "hot", "batch": 1, "connections": 1, "seconds": 0.2}
    if Outcome(**_apart("consume", job)).error:
        raise ApartError("ready after the restart, but no message could be claimed")


def _apart(task: str, job: Mapping[str, Any]) -> dict[str, Any]:
    return call_apart("bench.scale_jobs", task, job, within=PATIENCE)


def _is_refused(error: str) -> bool:
    """A body over the limit may also be answered by closing before it was read."""
    signs = ("HTTP/1.1 400", "HTTP/1.1 413", "the server closed a connection")
    return any(sign in error for sign in signs)


def _figure(rates: Sequence[float]) -> str:
    middle = statistics.median(rates)
    return f"{middle:,.0f}/s ±{(max(rates) - min(rates)) / 2 / middle:.0%}"
