"""Drives connections in a closed loop for a bounded time, and counts what was answered well."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Outcome:
    messages: int
    seconds: float
    cpu_share: float
    error: str | None = None
    is_drained: bool = False

    @classmethod
    def invalid(cls, error: str) -> Outcome:
        return cls(messages=0, seconds=0.0, cpu_share=0.0, error=" ".join(error.split()))

    @property
    def rate(self) -> float:
        return self.messages / self.seconds if self.seconds else 0.0


class Loop(Protocol):
    """What one connection repeats, until the run is over."""

    def begin(self) -> None: ...


class Run:
    """One measurement: starts every connection's loop, forgets the warm-up, ends on time.

    It ends early at the first error (the figure is then invalid) and when a consumer finds nothing.
    """

    def __init__(self, *, seconds: float, warm_up: float, most: int | None = None) -> None:
        self._seconds = seconds
        self._warm_up = warm_up
        self._most = most
        self._count = 0
        self._error: str | None = None
        self._is_drained = False
        self._ended = asyncio.Event()
        self._mark = self._end = (0.0, 0.0, 0)
        self._last_answer = 0.0
        self.is_over = False

    async def measure(self, loops: Sequence[Loop]) -> Outcome:
        clock = asyncio.get_running_loop()
        began = self._mark = (time.perf_counter(), time.process_time(), 0)
        clock.call_later(self._warm_up, self._forget_warm_up)
        clock.call_later(self._warm_up + self._seconds, self.end)
        for loop in loops:
            loop.begin()
        await self._ended.wait()
        # A queue that ran dry soon after the warm-up: the whole run tells more than its tail.
        if self._end[0] - self._mark[0] < 0.2 * self._seconds:
            self._mark = began
        return self._outcome()

    def add(self, count: int) -> None:
        self._count += count
        self._last_answer = time.perf_counter()
        if self._most is not None and self._count >= self._most:
            self.end()

    def drained(self) -> None:
        """Nothing was left: the time after the last success is not part of the measurement."""
        if not self.is_over:
            self._is_drained = True
            self.end()
            self._end = (self._last_answer, *self._end[1:])

    def fail(self, text: str) -> None:
        if not self.is_over:
            self._error = text
        self.end()

    def end(self) -> None:
        if self.is_over:
            return
        self.is_over = True
        self._end = (time.perf_counter(), time.process_time(), self._count)
        self._ended.set()

    def _outcome(self) -> Outcome:
        wall, cpu = self._end[0] - self._mark[0], self._end[1] - self._mark[1]
        messages = self._end[2] - self._mark[2]
        if self._error or not messages:
            return Outcome.invalid(self._error or f"nothing was finished in {wall:.1f} s")
        return Outcome(messages, wall, cpu / wall, is_drained=self._is_drained)

    def _forget_warm_up(self) -> None:
        if not self.is_over:
            self._mark = (time.perf_counter(), time.process_time(), self._count)
