"""The duty that fires schedules.  Every node runs it; the store lets one node fire each."""

from __future__ import annotations

import logging

from penstock.domain.errors import PenstockError, StoreUnavailable
from penstock.services.recurring import RecurringService

_log = logging.getLogger("penstock.recurring")
_AT_ONCE = 100
_LOOK_MS = 1_000  # longest interval: other processes declare and change schedules too


class ScheduleDuty:
    name = "recurring"

    def __init__(self, recurring: RecurringService) -> None:
        self._recurring = recurring

    def tick(self, now: int) -> int:
        # A schedule stays due while its previous message has not ended: page past it.
        last = (-1, "")
        while due := self._recurring.due(now=now, limit=_AT_ONCE, after=last).result():
            for _, name in due:
                self._fire(name, now)
            last = due[-1]
        next_at = self._recurring.next_at(now=now).result()
        soon = now + _LOOK_MS
        return soon if next_at is None else min(soon, next_at)

    def _fire(self, name: str, now: int) -> None:
        """A schedule that cannot fire stays due and must not block those after it."""
        try:
            self._recurring.fire(name, now=now).result()
        except StoreUnavailable:
            raise  # no other schedule can fire either
        except PenstockError as error:
            _log.error("recurring work %s could not be sent: %s", name, error)
