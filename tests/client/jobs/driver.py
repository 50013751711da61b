"""A driver for a worker with one queue of jobs and fixed random numbers."""

from __future__ import annotations

from collections.abc import Sequence

from penstock import Penstock
from penstock.ports.clock import Clock
from tests.client.driver import WorkerDriver


class FixedDice:
    def share(self) -> float:
        return 0.5

    def digits(self, count: int) -> str:
        return "0" * count


class JobDriver(WorkerDriver):
    def __init__(
        self, app: Penstock, clock: Clock, queue: str, *, neighbours: Sequence[str] = ()
    ) -> None:
        super().__init__(app, clock, neighbours=neighbours, dice=FixedDice())
        self.queue = queue

    @property
    def queues(self) -> list[str]:
        return [self.queue]
