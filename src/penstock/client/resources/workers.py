"""Workers and fleets of workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.api import scaling, workers
from penstock.api.operation import PageQuery
from penstock.api.scaling import Decided, Fleet, FleetProfile
from penstock.api.workers import ListWorkers, Registered, Worker
from penstock.client.resources.resource import ResourceClient, items_of
from penstock.domain.errors import WorkerGone
from penstock.domain.worker import NewWorker


class WorkerClient(ResourceClient):
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
        return items_of(
            lambda cursor: self.page(gone=gone, cursor=cursor), lambda page: page.workers
        )

    def page(
        self, *, gone: bool = False, limit: int = 100, cursor: str | None = None
    ) -> workers.Workers:
        query = ListWorkers(gone=gone, limit=limit, cursor=cursor)
        return self._request(workers.LIST, query=query)


class ScalingClient(ResourceClient):
    def list(self) -> Sequence[Fleet]:
        """List fleets by name."""
        return self._request(scaling.LIST).fleets

    def get(self, fleet: str) -> Fleet:
        """Raises FleetNotFound."""
        return self._request(scaling.GET, fleet=fleet)

    def decisions(self, fleet: str, *, limit: int = 10) -> Sequence[Decided]:
        """List decisions, newest first; raises FleetNotFound."""
        query = PageQuery(limit=limit)
        return self._request(scaling.DECISIONS, query=query, fleet=fleet).decisions

    def wanted(self, fleet: str) -> int:
        """Return the wanted number of workers; raises FleetNotFound and FleetNotWatched."""
        return self._request(scaling.WANTED, fleet=fleet).value

    def profile(self, fleet: str) -> FleetProfile:
        """Raises FleetNotFound."""
        return self._request(scaling.GET_PROFILE, fleet=fleet)

    def change_profile(self, fleet: str, changes: Mapping[str, Any]) -> FleetProfile:
        """Override settings of its profile; raises FleetNotFound or InvalidRequest."""
        return self._request(scaling.CHANGE_PROFILE, changes, fleet=fleet)

    def reset_profile(self, fleet: str) -> FleetProfile:
        """Remove all overrides; raises FleetNotFound."""
        return self._request(scaling.RESET_PROFILE, fleet=fleet)
