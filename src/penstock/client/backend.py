"""What an application runs on: a store opened in its own process, or a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from penstock.api.sends import SendResult
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
    a store takes drafts as they are and takes part in the caller's transaction (`tx`), a server
    gets them as JSON and rejects `tx`.
    """

    @property
    def clock(self) -> Clock: ...

    @property
    def channel(self) -> Channel:
        """Answers the operations of the API."""
        ...

    @property
    def limits(self) -> Limits | None:
        """Limits of the store; None: a server checks its own."""
        ...

    def send(
        self,
        queue: str,
        drafts: Sequence[Draft],
        *,
        tx: object = None,
        settings: Mapping[str, Any] | None = None,
    ) -> list[SendResult]:
        """Create the queue if it is missing; `settings` are those of a queue created in `tx`."""
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
        """Create the topic if it is missing, and in `tx` also these subscriptions."""
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
        """Run the background duties of a store that has no server beside it."""
        ...

    def close(self) -> None: ...
