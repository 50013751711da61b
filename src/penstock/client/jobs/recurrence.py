"""Recurring jobs, as they are declared with `@app.recurring`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, Protocol, TypedDict, TypeVar

import msgspec

from penstock.client.jobs.options import JobOptions, Settled
from penstock.client.remote.recurring import RecurringOptions
from penstock.domain.duration import Duration, as_ms
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.draft import Draft
from penstock.domain.schedule import schedule as schedules
from penstock.domain.schedule.schedule import CatchUp, Cron, Every, Overlap, Rhythm, Template

E = TypeVar("E", bound=StrEnum)

_UNSAID = ("queue", "body", "attributes")  # the others have the same names in a draft


class RecurrenceOptions(TypedDict, total=False):
    """What `@app.recurring` takes beside a cron expression."""

    every: Duration  # in place of the cron expression
    zone: str  # of the cron expression; UTC without it
    name: str  # of the recurring work; the job's kind without it
    arguments: Mapping[str, object]  # of each call, by name
    catch_up: Literal["skip", "one", "all"]
    overlap: Literal["allow", "skip", "wait", "replace"]


class Recurrence(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    rhythm: Rhythm
    template: Template
    catch_up: CatchUp
    overlap: Overlap
    owner: str | None = None  # the application that declares it

    def options(self) -> RecurringOptions:
        """As a server is told."""
        template = msgspec.structs.asdict(self.template)
        del template["queue"]
        told: RecurringOptions = template | {  # type: ignore[assignment]
            "body": msgspec.Raw(self.template.body.encode()),
            "catch_up": self.catch_up,
            "overlap": self.overlap,
            "owner": self.owner,
        }
        match self.rhythm:
            case Cron(expression, zone):
                told |= {"cron": expression, "zone": zone}
            case Every(every_ms):
                told |= {"every_ms": every_ms}
        return told


class Recurs(Protocol):
    """The part of a job that is needed here."""

    @property
    def kind(self) -> str: ...
    def named(self, arguments: Mapping[str, object], options: JobOptions) -> tuple[Settled, Draft]:
        """What to enqueue for arguments by name."""
        ...


def rhythm_of(cron: str | None, given: RecurrenceOptions) -> Rhythm:
    """Raises InvalidRequest."""
    every = given.get("every")
    if (cron is None) == (every is None):
        raise InvalidRequest("recurring work has a cron expression or every=, one of them")
    if every is not None:
        return Every(as_ms("every", every))
    return Cron(cron or "", given.get("zone", "UTC"))


def recurrence_of(job: Recurs, rhythm: Rhythm, given: RecurrenceOptions) -> Recurrence:
    """Raises InvalidRequest for a rhythm, policies or arguments that make no sense."""
    if not hasattr(job, "named"):
        raise InvalidRequest("recurring work is a job: @app.recurring stands above @app.job")
    settled, draft = job.named(given.get("arguments", {}), {})
    same = {
        name: getattr(draft, name) for name in Template.__struct_fields__ if name not in _UNSAID
    }
    template = Template(
        queue=settled.queue, body=draft.body, attributes=draft.attributes or {}, **same
    )
    catch_up = _one_of(CatchUp, "catch_up", given.get("catch_up", CatchUp.ONE))
    overlap = _one_of(Overlap, "overlap", given.get("overlap", Overlap.ALLOW))
    name = given.get("name", job.kind)
    schedules.check(name, rhythm, template)
    return Recurrence(
        name=name, rhythm=rhythm, template=template, catch_up=catch_up, overlap=overlap
    )


def _one_of(policies: type[E], name: str, value: str) -> E:
    try:
        return policies(value)
    except ValueError:
        allowed = ", ".join(policies)
        raise InvalidRequest(f"{name} is one of {allowed}, not {value!r}") from None
