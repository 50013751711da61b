"""What stands behind an application: a store opened in its own process, or a server elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from penstock.api.sends import SendResult
from penstock.client.channel import Channel
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.message.draft import Draft
from penstock.domain.worker import NewWorker
from penstock.ports.clock import Clock
from penstock.ports.work import WorkAct, WorkSource
from penstock.worker.registration import Roll


class Backing(Protocol):
    """Safe to share between threads.  The async methods are for callers on an event loop."""

    @property
    def clock(self) -> Clock: ...

    @property
    def channel(self) -> Channel:
        """What answers the operations of the API."""
        ...

    def send(self, queue: str, drafts: Sequence[Draft]) -> list[SendResult]:
        """A missing queue is made."""
        ...

    async def send_async(self, queue: str, drafts: Sequence[Draft]) -> list[SendResult]: ...

    def send_in(
        self, tx: object, queue: str, drafts: Sequence[Draft], settings: Mapping[str, Any]
    ) -> list[SendResult]:
        """In the caller's own transaction, in which a missing queue is made with the settings."""
        ...

    async def send_in_async(
        self, tx: object, queue: str, drafts: Sequence[Draft], settings: Mapping[str, Any]
    ) -> list[SendResult]: ...

    def act_in(self, tx: object, act: WorkAct) -> None:
        """An act on a lease as part of the caller's own transaction; raises LeaseLost."""
        ...

    async def act_in_async(self, tx: object, act: WorkAct) -> None: ...

    def declare(self, queue: str, settings: Mapping[str, Any]) -> None:
        """Make the queue with these settings, or change those that differ."""
        ...

    async def declare_async(self, queue: str, settings: Mapping[str, Any]) -> None: ...
    def queue_names(self, *, prefix: str, limit: int) -> list[str]:
        """Of the queues that exist, in their order."""
        ...

    def change_breaker(self, changes: Mapping[str, Any], route: str | None) -> BreakerSettings:
        """Some settings of the circuit breaker, or of one route; the others stay as they are."""
        ...

    def source(self) -> WorkSource: ...
    def roll(self, about: NewWorker) -> Roll:
        """Where a worker is registered."""
        ...

    def start_duties(self) -> None:
        """Tidy and wake, where nobody else does: a store with no server beside it."""
        ...

    def close(self) -> None: ...
