"""A worker's registration that also retires recurring work which its application has dropped."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from penstock.domain.errors import PenstockError, StoreUnavailable
from penstock.worker.registration import Roll, Standing

_log = logging.getLogger("penstock.recurring")


class RetiringRoll:
    """Looks after registering, and with each beat: a worker of another version may have left."""

    def __init__(self, roll: Roll, retire: Callable[[], Sequence[str]], *, owner: str) -> None:
        self._roll = roll
        self._retire = retire
        self._owner = owner
        self._is_refused = False

    def register(self) -> str:
        worker_id = self._roll.register()
        self._look()
        return worker_id

    def beat(self, worker_id: str) -> Standing:
        standing = self._roll.beat(worker_id)
        if standing is Standing.ALIVE:
            self._look()
        return standing

    def leave(self, worker_id: str) -> None:
        self._roll.leave(worker_id)

    def _look(self) -> None:
        if self._is_refused:
            return
        try:
            for name in self._retire():
                _log.warning(
                    "recurring work %r is removed: %s declared it and does not any more",
                    name,
                    self._owner,
                )
        except (StoreUnavailable, OSError):
            pass  # the next beat tries again
        except PenstockError as error:  # a key without the role, or a server from before
            self._is_refused = True
            _log.warning("recurring work that is no longer declared is not removed: %s", error)
