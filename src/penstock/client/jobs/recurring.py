"""Recurring work in an application: `@app.recurring("@daily")`, `app.recurring.remove(…)`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, ParamSpec, Protocol, TypedDict, TypeVar, Unpack

import msgspec

from penstock.api.recurring import NewRecurring, Recurring
from penstock.client.channel import Channel
from penstock.client.jobs.job import Job
from penstock.client.jobs.options import JobOptions, ResolvedOptions
from penstock.client.resources.recurring import RecurringClient
from penstock.domain.duration import Duration, as_ms
from penstock.domain.errors import Forbidden, InvalidRequest
from penstock.domain.message.draft import Draft
from penstock.domain.schedule import schedule as schedules
from penstock.domain.schedule.schedule import (
    CatchUp,
    Cron,
    FixedInterval,
    Overlap,
    Rhythm,
    Template,
)

if TYPE_CHECKING:
    from penstock.client.app import Penstock

E = TypeVar("E", bound=StrEnum)

# Fields with the same name and meaning in a draft.
_SAME = frozenset(Template.__struct_fields__) - {"queue", "body", "attributes"}


class RecurrenceOptions(TypedDict, total=False):
    """The keyword arguments of `@app.recurring`, besides a cron expression."""

    every: Duration  # instead of a cron expression
    zone: str  # of the cron expression; default: UTC
    name: str  # of the recurring work; default: the job's kind
    arguments: Mapping[str, object]  # arguments of each call, by name
    catch_up: Literal["skip", "one", "all"]
    overlap: Literal["allow", "skip", "wait", "replace"]


class Recurrence(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    wanted: NewRecurring


class SchedulableJob(Protocol):
    """The part of a job that this module needs."""

    @property
    def kind(self) -> str: ...
    def named(
        self, arguments: Mapping[str, object], options: JobOptions
    ) -> tuple[ResolvedOptions, Draft]:
        """Build the draft for arguments by name."""
        ...


def rhythm_of(cron: str | None, given: RecurrenceOptions) -> Rhythm:
    """Build the rhythm; raises InvalidRequest."""
    every = given.get("every")
    if (cron is None) == (every is None):
        raise InvalidRequest("recurring work needs either a cron expression or every=")
    if every is not None:
        return FixedInterval(as_ms("every", every))
    return Cron(cron or "", given.get("zone", "UTC"))


def recurrence_of(job: SchedulableJob, rhythm: Rhythm, given: RecurrenceOptions) -> Recurrence:
    """Raises InvalidRequest for an invalid rhythm, policies or arguments."""
    if not hasattr(job, "named"):
        raise InvalidRequest("@app.recurring needs a job: put it above @app.job")
    resolved, draft = job.named(given.get("arguments", {}), {})
    wanted = NewRecurring(
        queue=resolved.queue,
        body=msgspec.Raw(draft.body.encode()),
        attributes=draft.attributes or {},
        catch_up=_one_of(CatchUp, "catch_up", given.get("catch_up", CatchUp.ONE)),
        overlap=_one_of(Overlap, "overlap", given.get("overlap", Overlap.ALLOW)),
        **{name: getattr(draft, name) for name in _SAME},
    )
    match rhythm:
        case Cron(expression, zone):
            wanted.cron, wanted.zone = expression, zone
        case FixedInterval(every_ms):
            wanted.every_ms = every_ms
    name = given.get("name", job.kind)
    schedules.check(name, rhythm, wanted.template(draft.body))
    return Recurrence(name=name, wanted=wanted)


def _one_of(policies: type[E], name: str, value: str) -> E:
    try:
        return policies(value)
    except ValueError:
        allowed = ", ".join(policies)
        raise InvalidRequest(f"{name} is one of {allowed}, not {value!r}") from None


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
