"""What both job sources do with a claim: build its jobs, and report errors of single queues."""

from __future__ import annotations

import logging
from operator import attrgetter
from typing import Any

from penstock.api.messages import Message
from penstock.domain.errors import PenstockError, StoreUnavailable
from penstock.domain.message import lifecycle
from penstock.worker.claimed_job import ClaimedJob

_log = logging.getLogger("penstock.client")

_SAME = (
    "id",
    "attempts",
    "failures",
    "crashes",
    "timeout_ms",
    "max_attempts",
    "kind",
    "entity_id",
    "group",
    "priority",
    "route",
    "lease_no",
)
_same = attrgetter(*_SAME)


def job_of(message: lifecycle.Message | Message, **more: Any) -> ClaimedJob:
    """The job of a message that a store or a server returned; `more`: the fields that differ."""
    return ClaimedJob(**dict(zip(_SAME, _same(message), strict=True)), **more)


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
