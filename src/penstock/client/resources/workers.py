"""Workers: they register, send beats and leave; operators list and drain them."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.api import workers
from penstock.api.workers import ListWorkers, Registered, Worker
from penstock.client.channel import Channel
from penstock.domain.errors import WorkerGone
from penstock.domain.worker import NewWorker


class WorkerClient:
    def __init__(self, channel: Channel) -> None:
        self._request = channel.request

    def register(self, about: NewWorker | None = None) -> Registered:
        return self._request(workers.REGISTER, about or NewWorker())

    def beat(self, worker_id: str) -> Registered | None:
        """Send a beat; None if the worker no longer counts as alive and must register again."""
        try:
            return self._request(workers.BEAT, worker=worker_id)
        except WorkerGone:
            return None

    def drain(self, worker_id: str) -> Worker:
        return self._request(workers.DRAIN, worker=worker_id)

    def leave(self, worker_id: str) -> None:
        self._request(workers.LEAVE, worker=worker_id)

    def get(self, worker_id: str) -> Worker:
        return self._request(workers.GET, worker=worker_id)

    def list(self, *, gone: bool = False) -> Iterator[Worker]:
        """List workers in the order in which they registered, page by page."""
        cursor: str | None = None
        while True:
            page = self.page(gone=gone, cursor=cursor)
            yield from page.workers
            cursor = page.next
            if cursor is None:
                return

    def page(
        self, *, gone: bool = False, limit: int = 100, cursor: str | None = None
    ) -> workers.Workers:
        query = ListWorkers(gone=gone, limit=limit, cursor=cursor)
        return self._request(workers.LIST, query=query)
