"""Penstock inside the application's own process: no HTTP, every send synced before it returns.

Two questions: at the pace of a small service, how long from the send to the handler, beside what
one sync costs on this disk at the same moment; and how much more than that pace can it sustain?
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from bench.fsync import Latency, fdatasync_times, summary

PACE = 150.0
SUSTAINED = 20 * PACE
SENDERS = 16
SLICE_SECONDS = 2.0
DRAIN_WITHIN = 60.0

Handle: TypeAlias = Callable[[int], None]


class Embedded(Protocol):
    """The seam: what `bench.embedded` makes of Penstock's in-process API."""

    def send(self, number: int) -> None:
        """Sends one event that carries `number`; returns when it is durable. Any thread."""

    def close(self) -> None: ...


Open: TypeAlias = Callable[[Path, Handle], Embedded]


@dataclass(frozen=True)
class InProcess:
    handled_after: Latency
    disk: Latency
    sustained: float

    @property
    def is_quick(self) -> bool:
        return self.handled_after.p99 <= 2 * self.disk.p99

    @property
    def is_sustained(self) -> bool:
        return self.sustained >= SUSTAINED


def measure(opening: Open, folder: Path, *, slices: int, seconds: float) -> InProcess:
    """Alternates slices of paced events and of plain syncs, so that both meet the same disk."""
    events, syncs = _Events(), []
    queue = opening(folder, events.handle)
    try:
        count = int(PACE * min(SLICE_SECONDS, seconds))
        _send_paced(queue, events, count=10)
        events.forget()
        for _ in range(slices):
            _send_paced(queue, events, count=count)
            syncs += fdatasync_times(folder, count=count, interval=1 / PACE)
        paced = summary(events.latencies())
        events.forget()
        sustained = _sustain(queue, events, seconds)
    finally:
        queue.close()
    return InProcess(paced, summary(syncs), sustained)


class _Events:
    """When each event was sent and when its handler was called."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all_handled = threading.Condition(self._lock)
        self._next = 0
        self.forget()

    def forget(self) -> None:
        with self._lock:
            self._sent: dict[int, float] = {}
            self._handled: dict[int, float] = {}

    def begin(self) -> int:
        with self._lock:
            self._next += 1
            self._sent[self._next] = time.perf_counter()
            return self._next

    def handle(self, number: int) -> None:
        now = time.perf_counter()
        with self._lock:
            # The first call counts: a redelivery would be a second one.
            self._handled.setdefault(number, now)
            if len(self._handled) >= len(self._sent):
                self._all_handled.notify_all()

    def wait(self) -> None:
        with self._lock:
            done = self._all_handled.wait_for(
                lambda: len(self._handled) >= len(self._sent), DRAIN_WITHIN
            )
            if not done:
                lost = len(self._sent) - len(self._handled)
                raise RuntimeError(f"{lost} events were sent and never handled")

    def latencies(self) -> list[float]:
        return [self._handled[number] - sent for number, sent in self._sent.items()]

    def rate(self) -> float:
        took = max(self._handled.values()) - min(self._sent.values())
        return len(self._handled) / took


def _send_paced(queue: Embedded, events: _Events, *, count: int) -> None:
    due = time.perf_counter()
    for _ in range(count):
        queue.send(events.begin())
        due += 1 / PACE
        time.sleep(max(0.0, due - time.perf_counter()))
    events.wait()


def _sustain(queue: Embedded, events: _Events, seconds: float) -> float:
    """As fast as a few threads can send, until the last one is handled."""
    until = time.perf_counter() + seconds

    def send_on() -> None:
        while time.perf_counter() < until:
            queue.send(events.begin())

    with ThreadPoolExecutor(SENDERS) as senders:
        for sender in [senders.submit(send_on) for _ in range(SENDERS)]:
            sender.result()
    events.wait()
    return events.rate()
