"""A store of one's own that says when something was sent to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.client.answers import SendResult
from penstock.client.embedded import Embedded
from penstock.domain.draft import Draft
from penstock.ports.clock import Clock
from penstock.settings.values import Queues, Settings, Store


class Inline(Embedded):
    def __init__(self, url: str, clock: Clock, on_sent: Callable[[], None]) -> None:
        settings = Settings(store=Store(url=url), queues=Queues(auto_create=True))
        super().__init__(settings, clock=clock)
        self._on_sent = on_sent

    def send(self, queue: str, drafts: Sequence[Draft], tx: object = None) -> list[SendResult]:
        answers = super().send(queue, drafts, tx)
        if tx is None:  # otherwise it is not there before the caller commits
            self._on_sent()
        return answers

    async def send_async(
        self, queue: str, drafts: Sequence[Draft], tx: object = None
    ) -> list[SendResult]:
        answers = await super().send_async(queue, drafts, tx)
        if tx is None:
            self._on_sent()
        return answers
