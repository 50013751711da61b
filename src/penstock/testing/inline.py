"""A local store that calls back when messages are sent to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.api.messages import SendResult
from penstock.client.local.backend import LocalBackend
from penstock.domain.message.draft import Draft
from penstock.ports.clock import Clock
from penstock.settings import Settings


class Inline(LocalBackend):
    """Sends in the caller's own transaction are not reported, because it has not committed yet."""

    def __init__(self, settings: Settings, clock: Clock, on_sent: Callable[[], None]) -> None:
        super().__init__(settings, clock=clock)
        self._on_sent = on_sent

    def send(
        self, queue: str, drafts: Sequence[Draft], *, tx: object = None, **more: Any
    ) -> list[SendResult]:
        answers = super().send(queue, drafts, tx=tx, **more)
        if tx is None:
            self._on_sent()
        return answers

    async def send_async(
        self, queue: str, drafts: Sequence[Draft], *, tx: object = None, **more: Any
    ) -> list[SendResult]:
        answers = await super().send_async(queue, drafts, tx=tx, **more)
        if tx is None:
            self._on_sent()
        return answers
