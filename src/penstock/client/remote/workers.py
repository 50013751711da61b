"""The workers of a server elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from urllib.parse import quote, urlencode

import msgspec

from penstock.client.remote.transport import Transport
from penstock.domain.errors import WorkerGone
from penstock.domain.worker import NewWorker, WorkerState


class HeldLease(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message that a worker holds."""

    id: str
    queue: str
    attempts: int
    leased_until: datetime
    leased_at: datetime | None = None
    kind: str | None = None


class Worker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    state: WorkerState
    slots: int
    registered_at: datetime
    beat_at: datetime
    alive_until: datetime
    name: str | None = None
    host: str | None = None
    pid: int | None = None
    queues: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    ended_at: datetime | None = None
    holding: int | None = None  # told in a list
    leases: tuple[HeldLease, ...] | None = None  # told of one worker
    valid_ms: int | None = None  # told to the worker itself
    beat_ms: int | None = None

    @property
    def is_draining(self) -> bool:
        return self.state is WorkerState.DRAINING


class WorkerPage(msgspec.Struct, frozen=True):
    workers: list[Worker]
    next: str | None = None


_worker = msgspec.json.Decoder(Worker)
_page = msgspec.json.Decoder(WorkerPage)


class RemoteWorkers:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def register(self, about: NewWorker | None = None) -> Worker:
        body = NewWorker() if about is None else about
        return _worker.decode(self._transport.call("POST", "/v1/workers", body=body).body)

    def beat(self, worker_id: str) -> Worker | None:
        """None: it is not believed to be there any more, and must register anew."""
        try:
            answer = self._transport.call("POST", _path(worker_id, "beat"), is_safe=True)
        except WorkerGone:
            return None
        return _worker.decode(answer.body)

    def drain(self, worker_id: str) -> Worker:
        answer = self._transport.call("POST", _path(worker_id, "drain"), is_safe=True)
        return _worker.decode(answer.body)

    def leave(self, worker_id: str) -> None:
        self._transport.call("DELETE", _path(worker_id), is_safe=True)

    def get(self, worker_id: str) -> Worker:
        return _worker.decode(self._transport.call("GET", _path(worker_id)).body)

    def list(self, *, gone: bool = False) -> Iterator[Worker]:
        """In the order in which they registered, page by page."""
        cursor: str | None = None
        while True:
            page = self.page(gone=gone, cursor=cursor)
            yield from page.workers
            cursor = page.next
            if cursor is None:
                return

    def page(
        self, *, gone: bool = False, limit: int | None = None, cursor: str | None = None
    ) -> WorkerPage:
        wanted = {"gone": "true" if gone else None, "limit": limit, "cursor": cursor}
        query = urlencode({name: v for name, v in wanted.items() if v is not None})
        return _page.decode(self._transport.call("GET", f"/v1/workers?{query}").body)


def _path(worker_id: str, *more: str) -> str:
    return "/".join(("/v1/workers", quote(worker_id, safe=""), *more))
