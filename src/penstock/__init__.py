"""Penstock: a durable work-queue platform.  Everything is a message in a queue."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from penstock.version import __version__ as __version__

if TYPE_CHECKING:
    from penstock.client.app import Penstock as Penstock
    from penstock.client.bus.bus import Event as Event
    from penstock.client.bus.notifications import DueNotification as DueNotification
    from penstock.client.flows.steps import chain as chain
    from penstock.client.flows.steps import group as group
    from penstock.client.flows.steps import previous as previous
    from penstock.client.jobs.chunk_job import ChunkJob as ChunkJob
    from penstock.client.jobs.current import Current as Current
    from penstock.client.jobs.current import current as current
    from penstock.client.jobs.handle import Enqueued as Enqueued
    from penstock.client.jobs.item import Item as Item
    from penstock.client.jobs.job import Job as Job
    from penstock.client.jobs.options import Unique as Unique
    from penstock.client.jobs.steps import sleep as sleep
    from penstock.client.jobs.steps import sleep_sync as sleep_sync
    from penstock.client.jobs.steps import step as step
    from penstock.client.jobs.steps import step_sync as step_sync
    from penstock.client.jobs.steps import wait_event as wait_event
    from penstock.client.jobs.steps import wait_event_sync as wait_event_sync
    from penstock.domain.errors import JobFailed as JobFailed
    from penstock.domain.errors import PenstockError as PenstockError
    from penstock.domain.message.notification import RetrySchedule as RetrySchedule
    from penstock.domain.message.outcome import Bury as Bury
    from penstock.domain.message.outcome import Cancel as Cancel
    from penstock.domain.message.outcome import Retry as Retry
    from penstock.domain.message.outcome import Snooze as Snooze
    from penstock.domain.message.retry import Exponential as Exponential
    from penstock.worker.batch import Batch as Batch
    from penstock.worker.interruption import JobCancelled as JobCancelled

# Imported when they are asked for: most parts of Penstock need none of them.
_HOMES = {
    "Penstock": "client.app",
    "Job": "client.jobs.job",
    "Enqueued": "client.jobs.handle",
    "Batch": "worker.batch",
    "JobCancelled": "worker.interruption",
    "Item": "client.jobs.item",
    "ChunkJob": "client.jobs.chunk_job",
    "Unique": "client.jobs.options",
    "Exponential": "domain.message.retry",
    "Retry": "domain.message.outcome",
    "Snooze": "domain.message.outcome",
    "Cancel": "domain.message.outcome",
    "Bury": "domain.message.outcome",
    "chain": "client.flows.steps",
    "group": "client.flows.steps",
    "previous": "client.flows.steps",
    "current": "client.jobs.current",
    "Current": "client.jobs.current",
    "step": "client.jobs.steps",
    "step_sync": "client.jobs.steps",
    "sleep": "client.jobs.steps",
    "sleep_sync": "client.jobs.steps",
    "wait_event": "client.jobs.steps",
    "wait_event_sync": "client.jobs.steps",
    "DueNotification": "client.bus.notifications",
    "Event": "client.bus.bus",
    "RetrySchedule": "domain.message.notification",
    "PenstockError": "domain.errors",
    "JobFailed": "domain.errors",
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
