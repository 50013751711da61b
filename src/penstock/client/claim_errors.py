"""Errors of single queues when a worker claims from several."""

from __future__ import annotations

import logging

from penstock.domain.errors import PenstockError, StoreUnavailable

_log = logging.getLogger("penstock.client")


def log_failed_claim(queue: str, error: PenstockError) -> None:
    """Log a failed claim; outages at debug level, because the worker's next claim reports them."""
    level = logging.DEBUG if isinstance(error, StoreUnavailable) else logging.WARNING
    _log.log(level, "cannot claim from %r: %s", queue, error)


class DamagedQueues:
    """Logs each damaged queue once; the worker keeps claiming from the others."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def skip(self, queue: str, error: PenstockError) -> None:
        if queue not in self._logged:
            self._logged.add(queue)
            _log.error("skipping queue %r: %s", queue, error)
