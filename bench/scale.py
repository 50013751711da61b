"""Does a claim stay as fast with a million messages, a million delayed ones, ten thousand queues?

Each question runs two of our servers, a small one and a big one, and measures them in turn, so that
a busy minute falls on both. Memory and start time are taken from the one with a million waiting.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from bench.apart import ApartError
from bench.install import MissingError
from bench.peers.penstock import Penstock
from bench.processes import StartError
from bench.scale_server import Running, running
from bench.table import rate_text
from bench.workspace import Workspace

FEW = 1_000
HOUR_MS = 3_600_000
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
            small.fill(FEW)
            big.fill(many)
            self._note_memory(big, f"resident memory with {many:,} waiting")
            self._compare(f"{FEW:,} or {many:,} waiting", small, big)
            self._note_memory(big, "the same after it was consumed from")
            seconds = big.restart()
            # A server that says it is ready must also find a message.
            big.rate(batch=1, connections=1, seconds=0.2)
            self._note(f"start with {many:,} waiting", f"{seconds:.2f} s", "< 5 s", seconds < 5)

    def _many_delayed(self) -> None:
        many = self._size.messages
        with self._server() as small, self._server() as big:
            small.fill(FEW)
            big.fill(FEW)
            big.fill(many, delay_ms=HOUR_MS)
            self._compare(f"{FEW:,} waiting, alone or beside {many:,} delayed", small, big)

    def _many_queues(self) -> None:
        with self._server() as small, self._server() as big:
            for server, queues in ((small, 10), (big, self._size.queues)):
                server.fill(FEW)
                server.make_queues(queues - 1)
            self._compare(f"one hot queue of 10 or of {self._size.queues:,}", small, big)

    def _compare(self, question: str, small: Running, big: Running) -> None:
        for batch, connections in WAYS:
            rates: tuple[list[float], list[float]] = ([], [])
            for _ in range(self._size.rounds):
                for server, kept in zip((small, big), rates, strict=True):
                    kept.append(server.rate(batch, connections, self._size.seconds))
            few, many = (statistics.median(kept) for kept in rates)
            self._add(
                Finding(
                    question=f"{question}; claim and complete {batch}",
                    small=rate_text(rates[0]),
                    big=f"{rate_text(rates[1])} {many / few:.2f}x",
                    aim="≥ 0.80x",
                    is_met=many >= 0.8 * few,
                )
            )

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
