"""What each connection repeats under a load: ask, check, count, ask again."""

from __future__ import annotations

import asyncio
import time
from collections import deque

from bench.clients.base import Connection, Receipts
from bench.driver import Run
from bench.loads import Kind


class ConnectionLoop:
    def __init__(self, connection: Connection, run: Run, batch: int) -> None:
        self.connection = connection
        self.run = run
        self.batch = batch
        self.began = 0.0


class SendLoop(ConnectionLoop):
    def begin(self) -> None:
        if not self.run.is_over:
            self.began = time.perf_counter()
            self.connection.send(self.batch, self._sent)

    def _sent(self) -> None:
        self.run.add(self.batch, began=self.began)
        self.begin()


class ConsumeLoop(ConnectionLoop):
    _taken = 0

    def begin(self) -> None:
        if not self.run.is_over:
            self.began = time.perf_counter()
            self.connection.receive(self.batch, self._received)

    def _received(self, receipts: Receipts) -> None:
        if not receipts:
            self.run.drained()
            return
        self._taken = len(receipts)
        self.connection.ack(receipts, self._acked)

    def _acked(self) -> None:
        self.run.add(self._taken, began=self.began)
        self.begin()


class CycleLoop(ConsumeLoop):
    """Every connection sends before it takes, so there is something: it asks until it has it."""

    def begin(self) -> None:
        if not self.run.is_over:
            self.began = time.perf_counter()
            self.connection.send(self.batch, self._take)

    def _take(self) -> None:
        if not self.run.is_over:
            self.connection.receive(self.batch, self._received)

    def _received(self, receipts: Receipts) -> None:
        if receipts:
            super()._received(receipts)
        else:
            self._take()


class PacedSender(ConnectionLoop):
    """Sends at a fixed pace, whatever the answers take; notes when each send began."""

    def __init__(self, connection: Connection, run: Run, *, pace: float) -> None:
        super().__init__(connection, run, batch=1)
        self.unhandled: deque[float] = deque()
        self._interval = 1 / pace
        self._due = 0.0
        self._is_busy = False

    def begin(self) -> None:
        self._due = time.perf_counter()
        self._tick()

    def _tick(self) -> None:
        if self.run.is_over:
            return
        now = time.perf_counter()
        if now >= self._due and not self._is_busy:
            self._due = max(self._due + self._interval, now - 10 * self._interval)
            self._is_busy = True
            self.unhandled.append(now)
            self.connection.send(1, self._sent)
        asyncio.get_running_loop().call_later(max(self._due - now, 0.0002), self._tick)

    def _sent(self) -> None:
        self._is_busy = False


class Handler(ConnectionLoop):
    """Waits for messages.  The first one handled is counted as the first one sent: a swap of two
    changes neither the mean nor, at this pace, the median."""

    def __init__(self, connection: Connection, run: Run, sender: PacedSender) -> None:
        super().__init__(connection, run, batch=1)
        self._sender = sender

    def begin(self) -> None:
        if not self.run.is_over:
            self.connection.receive(1, self._received)

    def _received(self, receipts: Receipts) -> None:
        if not receipts:
            self.begin()
            return
        if self._sender.unhandled:
            self.run.add(len(receipts), began=self._sender.unhandled.popleft())
        self.connection.ack(receipts, self.begin)


LOOPS: dict[Kind, type[SendLoop] | type[ConsumeLoop]] = {
    "send": SendLoop,
    "consume": ConsumeLoop,
    "cycle": CycleLoop,
}
