"""Recurring jobs, as declared with `@app.recurring`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, Protocol, TypedDict, TypeVar

import msgspec

from penstock.api.recurring import NewRecurring
from penstock.client.jobs.options import JobOptions, ResolvedOptions
from penstock.domain.duration import Duration, as_ms
from penstock.domain.errors import InvalidRequest
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


class Recurs(Protocol):
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
        raise InvalidRequest("recurring work has a cron expression or every=, one of them")
    if every is not None:
        return FixedInterval(as_ms("every", every))
    return Cron(cron or "", given.get("zone", "UTC"))


def recurrence_of(job: Recurs, rhythm: Rhythm, given: RecurrenceOptions) -> Recurrence:
    """Raises InvalidRequest for an invalid rhythm, policies or arguments."""
    if not hasattr(job, "named"):
        raise InvalidRequest("recurring work is a job: @app.recurring stands above @app.job")
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
