"""What each connection repeats under a load: ask, check, count, ask again."""

from __future__ import annotations

from bench.clients.base import Connection, Receipts
from bench.driver import Run
from bench.loads import Kind


class ConnectionLoop:
    def __init__(self, connection: Connection, run: Run, batch: int) -> None:
        self.connection = connection
        self.run = run
        self.batch = batch


class SendLoop(ConnectionLoop):
    def begin(self) -> None:
        if not self.run.is_over:
            self.connection.send(self.batch, self._sent)

    def _sent(self) -> None:
        self.run.add(self.batch)
        self.begin()


class ConsumeLoop(ConnectionLoop):
    _taken = 0

    def begin(self) -> None:
        if not self.run.is_over:
            self.connection.receive(self.batch, self._received)

    def _received(self, receipts: Receipts) -> None:
        if not receipts:
            self.run.drained()
            return
        self._taken = len(receipts)
        self.connection.ack(receipts, self._acked)

    def _acked(self) -> None:
        self.run.add(self._taken)
        self.begin()


class CycleLoop(ConsumeLoop):
    """Every connection sends before it takes, so there is something: it asks until it has it."""

    def begin(self) -> None:
        if not self.run.is_over:
            self.connection.send(self.batch, self._take)

    def _take(self) -> None:
        if not self.run.is_over:
            self.connection.receive(self.batch, self._received)

    def _received(self, receipts: Receipts) -> None:
        if receipts:
            super()._received(receipts)
        else:
            self._take()


LOOPS: dict[Kind, type[SendLoop] | type[ConsumeLoop]] = {
    "send": SendLoop,
    "consume": ConsumeLoop,
    "cycle": CycleLoop,
}
