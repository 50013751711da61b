"""The ordinary queue behind a protocol that knows of one only, made when it is first needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from penstock.domain.errors import QueueNotFound
from penstock.domain.queue.queue import Queue, QueueSettings
from penstock.ports.unit_of_work import await_steps
from penstock.services.directory import Directory
from penstock.services.queues import QueueService

T = TypeVar("T")


class OwnQueue:
    def __init__(
        self, queues: QueueService, directory: Directory, *, name: str, settings: QueueSettings
    ) -> None:
        self._queues = queues
        self._directory = directory
        self._settings = settings
        self.name = name

    async def use(self, do: Callable[[Queue], Awaitable[T]]) -> T:
        """Do something with the queue; should it have been removed a moment ago, with a new one."""
        try:
            return await do(await self._get())
        except QueueNotFound:
            self._directory.forget(self.name)
            return await do(await self._get())

    async def find(self) -> Queue | None:
        """The queue if it is there."""
        cached = self._directory.cached(self.name)
        if cached is not None:
            return cached
        try:
            return await self._directory.load(self.name)
        except QueueNotFound:
            return None

    async def _get(self) -> Queue:
        return await await_steps(self._queues.get_or_create(self.name, self._settings))
