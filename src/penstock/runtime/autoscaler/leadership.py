"""Leader election: only the autoscaler that holds the group's lease in the store acts."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from penstock.domain.limits import SECOND
from penstock.runtime.autoscaler.fleet_watch import FleetWatch
from penstock.services.scaling import ScalingService

LEASE_MS = 30 * SECOND
RENEW_MS = 10 * SECOND

_log = logging.getLogger("penstock.scaling")


class Leadership:
    def __init__(self, scaling: ScalingService, *, holder: str, is_dry: bool) -> None:
        self._scaling = scaling
        self._holder = holder
        self._is_dry = is_dry
        self._group: str | None = None  # the group whose lease is or was held
        self._until = 0
        self._is_standby_logged = False
        self.next_at = 0

    def is_leading(self, group: str, watches: Iterable[FleetWatch], *, now: int) -> bool:
        """Renew the lease when due; a new leader continues from its predecessor's status."""
        if self._is_dry:
            self.next_at = now + RENEW_MS
            return True
        if group != self._group:
            self.leave()
        elif now < self.next_at:
            return now < self._until
        was_leading = now < self._until
        is_leading = self._scaling.lead(group, holder=self._holder, for_ms=LEASE_MS, now=now)
        self._group, self.next_at = group, now + RENEW_MS
        self._until = now + LEASE_MS if is_leading else 0
        if is_leading and not was_leading:
            self._take_over(group, watches, now)
        elif not is_leading:
            self._stand_by(group, watches, was_leading=was_leading)
        return is_leading

    def leave(self) -> None:
        """Give up the lease, so that another autoscaler need not wait for its end."""
        if self._group is not None and self._until:
            self._scaling.leave(self._group, holder=self._holder)
        self._group, self._until, self.next_at = None, 0, 0

    def _take_over(self, group: str, watches: Iterable[FleetWatch], now: int) -> None:
        _log.info("this autoscaler leads group %s", group)
        self._is_standby_logged = False
        left = self._scaling.of_group(group)
        for watch in watches:
            watch.forget()
            watch.adopt(left.get(watch.name), now=now)

    def _stand_by(self, group: str, watches: Iterable[FleetWatch], *, was_leading: bool) -> None:
        if was_leading:
            for watch in watches:
                watch.forget()
        if was_leading or not self._is_standby_logged:
            _log.info("another autoscaler leads group %s; this one stands by", group)
            self._is_standby_logged = True
