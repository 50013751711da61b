"""Penstock: a durable work-queue platform.  Everything is a message in a queue."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.client.app import Penstock as Penstock
    from penstock.client.bus import Event as Event
    from penstock.client.current import Current as Current
    from penstock.client.current import current as current
    from penstock.client.job import Enqueued as Enqueued
    from penstock.client.job import Job as Job
    from penstock.client.notifications import Due as Due
    from penstock.client.options import Unique as Unique
    from penstock.domain.errors import PenstockError as PenstockError
    from penstock.domain.notification import RetrySchedule as RetrySchedule
    from penstock.domain.outcome import Bury as Bury
    from penstock.domain.outcome import Cancel as Cancel
    from penstock.domain.outcome import Retry as Retry
    from penstock.domain.outcome import Snooze as Snooze
    from penstock.domain.retry import Exponential as Exponential

__version__ = "0.1.0"

# Imported when they are asked for: most parts of Penstock need none of them.
_HOMES = {
    "Penstock": "client.app",
    "Job": "client.job",
    "Enqueued": "client.job",
    "Unique": "client.options",
    "Exponential": "domain.retry",
    "Retry": "domain.outcome",
    "Snooze": "domain.outcome",
    "Cancel": "domain.outcome",
    "Bury": "domain.outcome",
    "current": "client.current",
    "Current": "client.current",
    "Due": "client.notifications",
    "Event": "client.bus",
    "RetrySchedule": "domain.notification",
    "PenstockError": "domain.errors",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
