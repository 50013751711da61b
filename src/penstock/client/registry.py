"""The worker registry, as seen by the workers of an application."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from penstock.client.channel import Channel
from penstock.client.resources.workers import WorkerClient
from penstock.domain.errors import PenstockError, StoreUnavailable, WorkerGone, WorkerNotFound
from penstock.domain.worker import NewWorker
from penstock.worker.application import RegistryStatus, WorkerRegistry

_log = logging.getLogger("penstock.recurring")


class ChannelRegistry:
    def __init__(self, channel: Channel, about: NewWorker) -> None:
        self._workers = WorkerClient(channel)
        self._about = about

    def register(self) -> str:
        return self._workers.register(self._about).id

    def beat(self, worker_id: str) -> RegistryStatus:
        found = self._workers.beat(worker_id)
        if found is None:
            return RegistryStatus.UNKNOWN
        return RegistryStatus.DRAINING if found.is_draining else RegistryStatus.ALIVE

    def leave(self, worker_id: str) -> None:
        with suppress(WorkerNotFound, WorkerGone):  # it has left already
            self._workers.leave(worker_id)


class RetiringRegistry:
    """Also retires recurring work that the application no longer declares.

    It checks after registering and with each beat: a worker of another version may have left.
    """

    def __init__(
        self, registry: WorkerRegistry, retire: Callable[[], Sequence[str]], *, owner: str
    ) -> None:
        self._registry = registry
        self._retire = retire
        self._owner = owner
        self._is_rejected = False

    def register(self) -> str:
        worker_id = self._registry.register()
        self._retire_undeclared()
        return worker_id

    def beat(self, worker_id: str) -> RegistryStatus:
        standing = self._registry.beat(worker_id)
        if standing is RegistryStatus.ALIVE:
            self._retire_undeclared()
        return standing

    def leave(self, worker_id: str) -> None:
        self._registry.leave(worker_id)

    def _retire_undeclared(self) -> None:
        if self._is_rejected:
            return
        try:
            for name in self._retire():
                _log.warning(
                    "removed recurring work %r: %s no longer declares it", name, self._owner
                )
        except (StoreUnavailable, OSError):
            pass  # the next beat tries again
        except PenstockError as error:  # the key lacks the role, or the server is older
            self._is_rejected = True
            _log.warning("recurring work that is no longer declared is not removed: %s", error)
