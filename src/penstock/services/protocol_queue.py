"""The queue behind a protocol that has only one queue; created on first use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from penstock.domain.errors import QueueNotFound
from penstock.domain.message.draft import Draft
from penstock.domain.queue.queue import Queue, QueueSettings
from penstock.ports.store import Sent
from penstock.ports.unit_of_work import await_steps
from penstock.services.messages import MessageService
from penstock.services.queues import QueueService

T = TypeVar("T")


class ProtocolQueue:
    def __init__(
        self, queues: QueueService, messages: MessageService, *, name: str, settings: QueueSettings
    ) -> None:
        self._queues = queues
        self._messages = messages
        self._settings = settings
        self.name = name

    async def send(self, draft: Draft) -> Sent:
        async def do(queue: Queue) -> Sent:
            return await await_steps(self._messages.send_one(queue.name, draft))

        return await self.use(do)

    async def use(self, do: Callable[[Queue], Awaitable[T]]) -> T:
        """Run `do` with the queue; if the queue was just removed, run it again with a new one."""
        queues, name, settings = self._queues, self.name, self._settings
        try:
            return await do(await await_steps(queues.get_or_create(name, settings)))
        except QueueNotFound:
            return await do(await await_steps(queues.load_or_create(name, settings)))
