"""Recurring work in an application: `@app.recurring("@daily")`, `app.recurring.remove(…)`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, Unpack

import msgspec

from penstock.client.jobs.job import Job
from penstock.client.jobs.recurrence import Recurrence, RecurrenceOptions, recurrence_of, rhythm_of
from penstock.client.local.backend import Embedded, wait_for
from penstock.client.remote.answers import Recurring
from penstock.client.remote.backend import OverHttp
from penstock.domain.datetimes import moment_of
from penstock.domain.schedule.schedule import Cron, Every, Schedule
from penstock.services import recurring

if TYPE_CHECKING:
    from penstock.client.app import Penstock

P = ParamSpec("P")
R = TypeVar("R")
Works = list[Recurring]  # inside the classes `list` is a method


class Kept(Protocol):
    """Recurring work in a store or on a server.  Raises ScheduleNotFound."""

    def list(self) -> Iterator[Recurring]: ...
    def get(self, name: str) -> Recurring: ...
    def remove(self, name: str) -> None: ...
    def pause(self, name: str) -> Recurring: ...
    def resume(self, name: str) -> Recurring: ...
    def run(self, name: str) -> str: ...


class InStore:
    """The same as `RemoteRecurring`, of a store in the same process."""

    def __init__(self, service: recurring.Recurring) -> None:
        self._service = service

    def list(self) -> Iterator[Recurring]:
        after = ""
        while page := self._page(after):
            yield from map(_record, page)
            after = page[-1].name

    def get(self, name: str) -> Recurring:
        return _record(wait_for(lambda: self._service.get(name)))

    def remove(self, name: str) -> None:
        wait_for(lambda: self._service.remove(name))

    def pause(self, name: str) -> Recurring:
        return _record(wait_for(lambda: self._service.pause(name)))

    def resume(self, name: str) -> Recurring:
        return _record(wait_for(lambda: self._service.resume(name)))

    def run(self, name: str) -> str:
        return wait_for(lambda: self._service.run_now(name))

    def _page(self, after: str) -> Any:
        return wait_for(lambda: self._service.page(after=after))


class RecurringWork:
    """Declares it when called, as a decorator; the methods are about what the store keeps.

    Each method has an async twin.
    """

    def __init__(self, app: Penstock) -> None:
        self._app = app
        self.declared: list[Recurrence] = []

    def __call__(
        self, cron: str | None = None, **given: Unpack[RecurrenceOptions]
    ) -> Callable[[Job[P, R]], Job[P, R]]:
        """Put above `@app.job`: the job is enqueued again and again, once per cluster."""
        rhythm = rhythm_of(cron, given)

        def decorate(job: Job[P, R]) -> Job[P, R]:
            self.declared.append(recurrence_of(job, rhythm, given))
            return job

        return decorate

    def list(self) -> Works:
        """All of it, by name, whoever declared it."""
        return [*self._kept.list()]

    def get(self, name: str) -> Recurring:
        """With its next and its last firing; raises ScheduleNotFound."""
        return self._kept.get(name)

    def remove(self, name: str) -> None:
        """No more firings; what was sent stays.  A worker that declares it makes it again."""
        self._kept.remove(name)

    def pause(self, name: str) -> Recurring:
        return self._kept.pause(name)

    def resume(self, name: str) -> Recurring:
        """Firings that fell into the pause are not caught up."""
        return self._kept.resume(name)

    def run(self, name: str) -> str:
        """Send it once now, besides its firings; the job's id."""
        return self._kept.run(name)

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
    def _kept(self) -> Kept:
        backing = self._app.backing
        if isinstance(backing, OverHttp):
            return backing.remote.recurring
        assert isinstance(backing, Embedded)
        return InStore(backing.broker.recurring)


def _record(schedule: Schedule) -> Recurring:
    fields: dict[str, Any] = msgspec.structs.asdict(schedule.template)
    fields["body"] = msgspec.json.decode(schedule.template.body)
    match schedule.rhythm:
        case Cron(expression, zone):
            fields |= {"cron": expression, "zone": zone}
        case Every(every_ms):
            fields["every_ms"] = every_ms
    for name in ("created_at", "changed_at", "next_at", "last_at"):
        instant = getattr(schedule, name)
        fields[name] = None if instant is None else moment_of(instant)
    same = ("name", "catch_up", "overlap", "is_paused", "last_id", "last_error", "owner")
    fields |= {name: getattr(schedule, name) for name in same}
    return Recurring(fired=schedule.fired_total, skipped=schedule.skipped_total, **fields)
