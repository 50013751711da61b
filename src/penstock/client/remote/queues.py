"""The queues of a server elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from penstock.client.remote.answers import Queue, QueuePage
from penstock.client.remote.transport import Transport
from penstock.domain.queue.queue import QueueSettings


class _Cancelled(msgspec.Struct):
    cancelled: int


class _Redriven(msgspec.Struct):
    redriven: int


_queue = msgspec.json.Decoder(Queue)
_page = msgspec.json.Decoder(QueuePage)


class RemoteQueues:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self, *, prefix: str = "", contains: str = "", dead_letter_queue: str | None = None
    ) -> Iterator[Queue]:
        """All of them by name, page by page, or those whose dead messages go to a certain queue."""
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
        limit: int | None = None,
        cursor: str | None = None,
    ) -> QueuePage:
        wanted = {
            "prefix": prefix or None,
            "contains": contains or None,
            "dead_letter_queue": dead_letter_queue,
            "limit": limit,
            "cursor": cursor,
        }
        query = urlencode({name: v for name, v in wanted.items() if v is not None})
        return _page.decode(self._transport.call("GET", f"/v1/queues?{query}").body)

    def get(self, name: str) -> Queue:
        return _queue.decode(self._transport.call("GET", _path(name)).body)

    def put(
        self,
        name: str,
        settings: QueueSettings | Mapping[str, Any] | None = None,
        *,
        only_new: bool = False,
    ) -> Queue:
        """Make the queue or give it these settings; with `only_new` QueueExists if it is there."""
        headers = {"If-None-Match": "*"} if only_new else None
        answer = self._transport.call(
            "PUT",
            _path(name),
            body={} if settings is None else settings,
            headers=headers,
            is_safe=not only_new,
        )
        return _queue.decode(answer.body)

    def patch(self, name: str, changes: Mapping[str, Any]) -> Queue:
        """Change some settings and leave the others."""
        answer = self._transport.call("PATCH", _path(name), body=changes, is_safe=True)
        return _queue.decode(answer.body)

    def delete(self, name: str, *, force: bool = False) -> None:
        self._transport.call("DELETE", _path(name) + ("?force=true" if force else ""))

    def pause(self, name: str) -> Queue:
        return _queue.decode(self._transport.call("POST", _path(name, "pause"), is_safe=True).body)

    def resume(self, name: str) -> Queue:
        return _queue.decode(self._transport.call("POST", _path(name, "resume"), is_safe=True).body)

    def unhold(self, name: str) -> Queue:
        """End the hold of a circuit on it; a pause stays."""
        return _queue.decode(self._transport.call("POST", _path(name, "unhold"), is_safe=True).body)

    def purge(self, name: str) -> int:
        """Cancel everything in it; returns how many there were."""
        answer = self._transport.call("POST", _path(name, "purge"))
        return msgspec.json.decode(answer.body, type=_Cancelled).cancelled

    def redrive(self, name: str, *, limit: int | None = None, to: str | None = None) -> int:
        """Give its dead messages a new life, where they died or in the queue `to`."""
        wanted = {"limit": limit, "to": to}
        body = {key: value for key, value in wanted.items() if value is not None}
        answer = self._transport.call("POST", _path(name, "redrive"), body=body)
        return msgspec.json.decode(answer.body, type=_Redriven).redriven


def _path(name: str, *more: str) -> str:
    return "/".join(("/v1/queues", quote(name, safe=""), *more))
