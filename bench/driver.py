"""Drives connections in a closed loop for a bounded time, and counts what was answered well."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from bench.fsync import Latency, summary


@dataclass(frozen=True)
class Outcome:
    messages: int
    seconds: float
    cpu_share: float  # of the generator
    server_cpu: float = 0.0  # seconds, of all processes of the peer
    p50_ms: float = 0.0  # of one round of a connection's loop
    p99_ms: float = 0.0
    error: str | None = None
    is_drained: bool = False

    @classmethod
    def invalid(cls, error: str) -> Outcome:
        return cls(messages=0, seconds=0.0, cpu_share=0.0, error=" ".join(error.split()))

    @property
    def rate(self) -> float:
        return self.messages / self.seconds if self.seconds else 0.0

    @property
    def cpu_us(self) -> float:
        """Server CPU per message; other processes on the machine hardly change it."""
        return 1e6 * self.server_cpu / self.messages if self.messages else 0.0


class Loop(Protocol):
    """What one connection repeats, until the run is over."""

    def begin(self) -> None: ...


class Mark(NamedTuple):
    at: float
    cpu: float
    server_cpu: float
    messages: int
    rounds: int


class Run:
    """One measurement: starts every connection's loop, forgets the warm-up, ends on time.

    It ends early at the first error (the figure is then invalid) and when a consumer finds nothing.
    """

    def __init__(
        self,
        *,
        seconds: float,
        warm_up: float,
        most: int | None = None,
        server_cpu: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._seconds = seconds
        self._warm_up = warm_up
        self._most = most
        self._server_cpu = server_cpu
        self._times = array("d")  # of every round, in seconds
        self._count = 0
        self._error: str | None = None
        self._is_drained = False
        self._ended = asyncio.Event()
        self._mark = self._end = Mark(0.0, 0.0, 0.0, 0, 0)
        self._last_answer = 0.0
        self.is_over = False

    async def measure(self, loops: Sequence[Loop]) -> Outcome:
        clock = asyncio.get_running_loop()
        began = self._mark = self._now()
        clock.call_later(self._warm_up, self._forget_warm_up)
        clock.call_later(self._warm_up + self._seconds, self.end)
        for loop in loops:
            loop.begin()
        await self._ended.wait()
        # A queue that ran dry soon after the warm-up: the whole run says more than its tail.
        if self._end.at - self._mark.at < 0.2 * self._seconds:
            self._mark = began
        return self._outcome()

    def add(self, count: int, *, began: float) -> None:
        """A round is over: `count` messages since `began`."""
        self._count += count
        self._last_answer = time.perf_counter()
        self._times.append(self._last_answer - began)
        if self._most is not None and self._count >= self._most:
            self.end()

    def drained(self) -> None:
        """Nothing was left: the time after the last success is not part of the measurement."""
        if not self.is_over:
            self._is_drained = True
            self.end()
            self._end = self._end._replace(at=self._last_answer)

    def fail(self, text: str) -> None:
        if not self.is_over:
            self._error = text
        self.end()

    def end(self) -> None:
        if self.is_over:
            return
        self.is_over = True
        self._end = self._now()
        self._ended.set()

    def _outcome(self) -> Outcome:
        begin, end = self._mark, self._end
        wall, messages = end.at - begin.at, end.messages - begin.messages
        if self._error or not messages:
            return Outcome.invalid(self._error or f"nothing was finished in {wall:.1f} s")
        times: Latency = summary(list(self._times[begin.rounds : end.rounds]))
        return Outcome(
            messages,
            wall,
            cpu_share=(end.cpu - begin.cpu) / wall,
            server_cpu=end.server_cpu - begin.server_cpu,
            p50_ms=times.p50,
            p99_ms=times.p99,
            is_drained=self._is_drained,
        )

    def _forget_warm_up(self) -> None:
        if not self.is_over:
            self._mark = self._now()

    def _now(self) -> Mark:
        server_cpu = self._server_cpu()
        return Mark(
            time.perf_counter(), time.process_time(), server_cpu, self._count, len(self._times)
        )
