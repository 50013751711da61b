"""What an application runs on: an in-process store, or a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from penstock.api.messages import SendResult
from penstock.api.topics import Published
from penstock.client.bus.subscription import DeclaredSubscription
from penstock.client.channel import Channel
from penstock.domain.limits import Limits
from penstock.domain.message.draft import Draft
from penstock.ports.clock import Clock
from penstock.worker.application import JobSource


class Backend(Protocol):
    """Safe to share between threads.

    Most requests go through the channel.  The methods here exist because the two backends differ:
    a store takes drafts as objects and can join the caller's transaction (`tx`); a server takes
    them as JSON and rejects `tx`.
    """

    @property
    def clock(self) -> Clock: ...

    @property
    def channel(self) -> Channel:
        """Answers the operations of the API."""
        ...

    @property
    def limits(self) -> Limits | None:
        """The limits of the store; None for a server, which checks its own."""
        ...

    def send(
        self,
        queue: str,
        drafts: Sequence[Draft],
        *,
        tx: object = None,
        settings: Mapping[str, Any] | None = None,
    ) -> list[SendResult]:
        """Send drafts; creates a missing queue, with `settings` if it is created in `tx`."""
        ...

    async def send_async(
        self,
        queue: str,
        drafts: Sequence[Draft],
        *,
        tx: object = None,
        settings: Mapping[str, Any] | None = None,
    ) -> list[SendResult]: ...

    def publish(
        self,
        topic: str,
        drafts: Sequence[Draft],
        *,
        node: str | None,
        tx: object = None,
        subscriptions: Sequence[DeclaredSubscription] = (),
    ) -> list[Published]:
        """Publish events; creates a missing topic, and in `tx` also these subscriptions."""
        ...

    async def publish_async(
        self,
        topic: str,
        drafts: Sequence[Draft],
        *,
        node: str | None,
        tx: object = None,
        subscriptions: Sequence[DeclaredSubscription] = (),
    ) -> list[Published]: ...

    def complete(self, receipt: str, *, tx: object) -> None:
        """Complete a claimed message in the caller's transaction; raises LeaseLost."""
        ...

    async def complete_async(self, receipt: str, *, tx: object) -> None: ...

    def source(self) -> JobSource: ...

    def start_duties(self) -> None:
        """Run the background duties of a store that no server serves."""
        ...

    def close(self) -> None: ...
