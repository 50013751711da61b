"""Queues: create, list, change, pause, empty and remove them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.api import queues
from penstock.api.queues import ListQueues, Queue, Redrive, RemoveQueue
from penstock.client.channel import Channel
from penstock.domain.queue.queue import QueueSettings


class QueueClient:
    def __init__(self, channel: Channel) -> None:
        self._request = channel.request

    def list(
        self, *, prefix: str = "", contains: str = "", dead_letter_queue: str | None = None
    ) -> Iterator[Queue]:
        """List queues by name, page by page; optionally those with a certain dead-letter queue."""
        cursor: str | None = None
        while True:
            page = self.page(
                prefix=prefix,
                contains=contains,
                dead_letter_queue=dead_letter_queue,
                cursor=cursor,
            )
            yield from page.queues
            cursor = page.next
            if cursor is None:
                return

    def page(
        self,
        *,
        prefix: str = "",
        contains: str = "",
        dead_letter_queue: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> queues.Queues:
        query = ListQueues(
            prefix=prefix or None,
            contains=contains or None,
            dead_letter_queue=dead_letter_queue,
            limit=limit,
            cursor=cursor,
        )
        return self._request(queues.LIST, query=query)

    def get(self, name: str) -> Queue:
        return self._request(queues.GET, queue=name)

    def put(
        self,
        name: str,
        settings: QueueSettings | Mapping[str, Any] | None = None,
        *,
        only_new: bool = False,
    ) -> Queue:
        """Create the queue or replace its settings; with `only_new` raises QueueExists."""
        wanted = QueueSettings() if settings is None else settings
        return self._request(queues.PUT, wanted, only_new=only_new, queue=name)

    def patch(self, name: str, changes: Mapping[str, Any]) -> Queue:
        """Change some settings and keep the others."""
        return self._request(queues.CHANGE, changes, queue=name)

    def delete(self, name: str, *, force: bool = False) -> None:
        self._request(queues.REMOVE, query=RemoveQueue(force=force), queue=name)

    def pause(self, name: str) -> Queue:
        return self._request(queues.PAUSE, queue=name)

    def resume(self, name: str) -> Queue:
        return self._request(queues.RESUME, queue=name)

    def unhold(self, name: str) -> Queue:
        """End a circuit's hold on the queue; a pause remains."""
        return self._request(queues.UNHOLD, queue=name)

    def purge(self, name: str) -> int:
        """Cancel all messages in it; returns how many there were."""
        return self._request(queues.PURGE, queue=name).cancelled

    def redrive(self, name: str, *, limit: int | None = None, to: str | None = None) -> int:
        """Send its dead messages back to the queues they died in, or to the queue `to`."""
        return self._request(queues.REDRIVE, Redrive(limit=limit, to=to), queue=name).redriven
