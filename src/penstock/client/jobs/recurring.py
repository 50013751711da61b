"""Recurring work in an application: `@app.recurring("@daily")`, `app.recurring.remove(…)`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar, Unpack

import msgspec

from penstock.api.recurring import Recurring
from penstock.client.channel import Channel
from penstock.client.jobs.job import Job
from penstock.client.jobs.recurrence import Recurrence, RecurrenceOptions, recurrence_of, rhythm_of
from penstock.client.resources.recurring import RecurringClient
from penstock.domain.errors import Forbidden

if TYPE_CHECKING:
    from penstock.client.app import Penstock

P = ParamSpec("P")
R = TypeVar("R")
Works = list[Recurring]  # inside the class `list` is a method

_log = logging.getLogger("penstock.client")


class RecurringWork:
    """Called as a decorator, declares recurring work; the methods manage what the store keeps.

    Each method has an async version.
    """

    def __init__(self, app: Penstock) -> None:
        self._app = app
        self.declared: list[Recurrence] = []

    def __call__(
        self, cron: str | None = None, **given: Unpack[RecurrenceOptions]
    ) -> Callable[[Job[P, R]], Job[P, R]]:
        """Put it above `@app.job`: the job is then enqueued on schedule, once per cluster."""
        rhythm = rhythm_of(cron, given)

        def decorate(job: Job[P, R]) -> Job[P, R]:
            self.declared.append(recurrence_of(job, rhythm, given))
            return job

        return decorate

    def list(self) -> Works:
        """List the recurring work of all applications, by name."""
        return [*self._schedules.list()]

    def get(self, name: str) -> Recurring:
        """Return it with its next and last firing; raises ScheduleNotFound."""
        return self._schedules.get(name)

    def remove(self, name: str) -> None:
        """Remove it; sent messages stay.  A worker that declares it creates it again."""
        self._schedules.remove(name)

    def pause(self, name: str) -> Recurring:
        return self._schedules.pause(name)

    def resume(self, name: str) -> Recurring:
        """Resume it; firings missed during the pause are not made up for."""
        return self._schedules.resume(name)

    def run(self, name: str) -> str:
        """Send it once now, in addition to its firings; returns the job's id."""
        return self._schedules.run(name)

    async def list_async(self) -> Works:
        return await asyncio.to_thread(self.list)

    async def get_async(self, name: str) -> Recurring:
        return await asyncio.to_thread(self.get, name)

    async def remove_async(self, name: str) -> None:
        await asyncio.to_thread(self.remove, name)

    async def pause_async(self, name: str) -> Recurring:
        return await asyncio.to_thread(self.pause, name)

    async def resume_async(self, name: str) -> Recurring:
        return await asyncio.to_thread(self.resume, name)

    async def run_async(self, name: str) -> str:
        return await asyncio.to_thread(self.run, name)

    @property
    def _schedules(self) -> RecurringClient:
        return RecurringClient(self._app.backend.channel)


def declare(channel: Channel, recurrence: Recurrence, *, owner: str | None) -> None:
    """Declare it for the application `owner`; logs a warning if the API key lacks the role."""
    wanted = msgspec.structs.replace(recurrence.wanted, owner=owner)
    try:
        RecurringClient(channel).put(recurrence.name, wanted)
    except Forbidden as error:
        _log.warning("recurring work %r is not declared: %s", recurrence.name, error)
