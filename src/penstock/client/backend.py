"""What an application runs on: an in-process store, or a server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from penstock.api.messages import SendResult
from penstock.api.topics import Published
from penstock.client.bus.subscription import Publication
from penstock.client.channel import Channel
from penstock.domain.limits import Limits
from penstock.domain.message.draft import Draft
from penstock.ports.clock import Clock
from penstock.worker.application import JobSource

Drafts = Sequence[Draft]
Values = Mapping[str, Any]  # the settings of a queue


class Backend(Protocol):
    """Safe to share between threads.

    Most requests go through the channel.  The methods here exist because the two backends differ:
    a store takes drafts as objects and can join the caller's transaction (`tx`); a server takes
    them as JSON and rejects `tx`.
    """

    clock: Clock
    channel: Channel  # answers the operations of the API
    limits: Limits | None  # of the store; None for a server, which checks its own
    can_wait: bool = True  # False in tests, where nothing runs while a test waits

    def send(
        self, queue: str, drafts: Drafts, *, tx: object = None, settings: Values | None = None
    ) -> list[SendResult]:
        """Send drafts; creates a missing queue, with `settings` if it is created in `tx`."""
        ...

    async def send_async(
        self, queue: str, drafts: Drafts, *, tx: object = None, settings: Values | None = None
    ) -> list[SendResult]:
        return await asyncio.to_thread(self.send, queue, drafts, tx=tx, settings=settings)

    def publish(self, wanted: Publication, *, tx: object = None) -> list[Published]:
        """Publish events; creates a missing topic, and in `tx` also the subscriptions."""
        ...

    async def publish_async(self, wanted: Publication, *, tx: object = None) -> list[Published]:
        return await asyncio.to_thread(self.publish, wanted, tx=tx)

    def complete(self, receipt: str, *, tx: object, result: str | None = None) -> None:
        """Complete a claimed message in the caller's transaction; raises LeaseLost, TooLarge.

        `result`: JSON text.
        """
        ...

    async def complete_async(self, receipt: str, *, tx: object, result: str | None = None) -> None:
        self.complete(receipt, tx=tx, result=result)

    def source(self) -> JobSource: ...

    def start_duties(self) -> None:
        """Run the background duties of a store that no server serves."""
        ...

    def close(self) -> None: ...
