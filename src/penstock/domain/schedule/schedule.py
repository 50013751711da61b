"""Schedules: when recurring work is sent, and how missed and overlapping firings are handled.

    plan(schedule, now) ──▶ which instants fire, how many are dropped, when to check again
    advance(schedule, plan) ──▶ the schedule after that

Pure: `now` comes in as a value.

Versions of an application run side by side during a deployment, and the old one still declares what
the new one has dropped.  Each worker registers with its application's name and a digest of its
declarations: while a worker of the same application with another digest is alive, nothing is
retired.  So declarations do not flap, and in the end those of the remaining version stay.

Work without an owner was created by an operator and is never retired.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice

import msgspec
from msgspec.structs import asdict, replace

from penstock.domain.datetimes import moment_of
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, MAX_INSTANT, MINUTE, SECOND, check_range
from penstock.domain.message.draft import Draft
from penstock.domain.queue.queue import DedupUntil, check_name
from penstock.domain.schedule import cron
from penstock.domain.worker import Worker, is_alive

MAX_MISSED = 1_000  # firings that one check may find; the next check finds the rest
LATE_MS = MINUTE  # after that a firing counts as missed, not just late
SCHEDULE = "penstock.schedule"  # attributes of each sent message
FIRE_AT = "penstock.fire_at"
# Labels of a worker.
APPLICATION = "penstock.application"
DECLARES = "penstock.recurring"
RETIRED = "recurring_retired"  # a kind of fact
# A worker declares before it registers; until then, other workers must not retire its declarations.
REGISTRATION_GRACE_MS = MINUTE


class Cron(msgspec.Struct, frozen=True, tag="cron", tag_field="type", forbid_unknown_fields=True):
    expression: str  # five fields, six with seconds in front, or one of cron.ALIASES
    zone: str = "UTC"


class FixedInterval(
    msgspec.Struct, frozen=True, tag="every", tag_field="type", forbid_unknown_fields=True
):
    """Fires at whole multiples of the interval since 1970, so that all nodes and restarts agree."""

    every_ms: int


Rhythm = Cron | FixedInterval


class CatchUp(StrEnum):
    """What happens to firings that were missed because no node was running."""

    SKIP = "skip"
    ONE = "one"  # one firing, the latest, for all of them
    ALL = "all"


class Overlap(StrEnum):
    """What a firing does while the previous one has not ended."""

    ALLOW = "allow"
    SKIP = "skip"
    WAIT = "wait"  # fires when the previous one has ended
    REPLACE = "replace"  # cancels the previous one if it is queued, not if it is running


class Template(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The message that each firing sends."""

    queue: str
    body: str = "null"  # JSON text
    kind: str | None = None
    entity_id: str | None = None
    tags: tuple[str, ...] = ()
    group: str | None = None
    priority: int = 0
    attributes: dict[str, str] = {}
    max_attempts: int | None = None
    expires_in_ms: int | None = None
    timeout_ms: int | None = None
    retries_timeouts: bool = False
    route: str | None = None
    dedup_key: str | None = None
    dedup_until: DedupUntil | None = None

    def draft(self, schedule: str, *, fire_at: int) -> Draft:
        """The message of one firing, labelled with its schedule and instant."""
        values = asdict(self)
        del values["queue"]
        values["attributes"] = self.attributes | {SCHEDULE: schedule, FIRE_AT: _to_text(fire_at)}
        return Draft(**values, due_at=fire_at)


class FiringPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What one check of a schedule decides."""

    fire_at: tuple[int, ...] = ()
    skipped: int = 0
    next_at: int | None = None  # None: no more firings
    is_held: bool = False  # a firing is due, but the previous one has not ended


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    rhythm: Rhythm
    template: Template
    created_at: int
    changed_at: int
    catch_up: CatchUp = CatchUp.ONE
    overlap: Overlap = Overlap.ALLOW
    is_paused: bool = False
    next_at: int | None = None
    last_at: int | None = None  # the planned instant of the last firing
    last_id: str | None = None  # the message that it sent
    fired_total: int = 0
    skipped_total: int = 0
    last_error: str | None = None  # why the last due firing could not be sent
    owner: str | None = None  # the application that declared it; None: created by an operator


def check(name: str, rhythm: Rhythm, template: Template) -> None:
    """Raises InvalidRequest."""
    check_name(name, what="the name of recurring work")
    check_name(template.queue)
    check_rhythm(rhythm)


def check_rhythm(rhythm: Rhythm) -> None:
    """Raises InvalidRequest."""
    match rhythm:
        case FixedInterval(every_ms):
            check_range("every_ms", every_ms, SECOND, 366 * DAY)
        case Cron():
            if next_after(rhythm, 0) is None:
                raise InvalidRequest(f"{rhythm.expression!r} never fires")


def next_after(rhythm: Rhythm, after: int) -> int | None:
    """The first instant after `after`; raises InvalidRequest."""
    return next(instants(rhythm, after), None)


def instants(rhythm: Rhythm, after: int) -> Iterator[int]:
    """All instants after `after`, in order."""
    match rhythm:
        case FixedInterval(every_ms):
            first = after // every_ms + 1
            return iter(range(first * every_ms, MAX_INSTANT, every_ms))
        case Cron():
            return cron.instants(rhythm.expression, rhythm.zone, after)


def preview(rhythm: Rhythm, *, after: int, count: int) -> list[int]:
    return list(islice(instants(rhythm, after), count))


def plan(schedule: Schedule, *, now: int, is_busy: bool = False) -> FiringPlan:
    """`is_busy`: the message of the last firing has not ended."""
    due = _due(schedule, now)
    if schedule.is_paused or not due:
        return FiringPlan(next_at=schedule.next_at)
    if is_busy and schedule.overlap is Overlap.WAIT:
        return FiringPlan(next_at=schedule.next_at, is_held=True)
    next_at = next_after(schedule.rhythm, due[-1])
    fired = _caught_up(schedule.catch_up, due, now)
    if schedule.catch_up is not CatchUp.ALL and next_at is not None and next_at <= now:
        fired = ()  # more were missed than one check finds; the latest will stand for all of them
    if schedule.overlap is Overlap.SKIP:
        fired = () if is_busy else fired[-1:]
    elif schedule.overlap is Overlap.REPLACE:
        fired = fired[-1:]
    elif schedule.overlap is Overlap.WAIT:
        # One now; the others follow when it has ended.
        fired = fired[:1]
        if fired and schedule.catch_up is CatchUp.ALL:
            due = due[: due.index(fired[0]) + 1]
            next_at = next_after(schedule.rhythm, due[-1])
    return FiringPlan(fire_at=fired, skipped=len(due) - len(fired), next_at=next_at)


def advance(schedule: Schedule, done: FiringPlan, *, sent: Sequence[str]) -> Schedule:
    """The schedule after its firings were sent; those that the queue refused stay due."""
    fired, left = done.fire_at[: len(sent)], done.fire_at[len(sent) :]
    return replace(
        schedule,
        next_at=left[0] if left else done.next_at,
        last_at=fired[-1] if fired else schedule.last_at,
        last_id=sent[-1] if sent else schedule.last_id,
        fired_total=schedule.fired_total + len(fired),
        skipped_total=schedule.skipped_total + done.skipped,
        last_error=None,
    )


def record_run(schedule: Schedule, *, message_id: str, now: int) -> Schedule:
    """Record a manual run: its own firings continue unchanged."""
    return replace(schedule, last_at=now, last_id=message_id, fired_total=schedule.fired_total + 1)


def record_failure(schedule: Schedule, error: str) -> Schedule:
    """Nothing was sent; the firing stays due."""
    return replace(schedule, last_error=error)


def declare(before: Schedule | None, wanted: Schedule, *, now: int) -> Schedule:
    """A schedule as its program declares it, new or existing.

    An identical declaration changes nothing: programs repeat it at every start, and a firing that
    fell due while none of them ran must not be lost.
    """
    if before is None:
        return replace(wanted, next_at=next_after(wanted.rhythm, now))
    same = before.rhythm == wanted.rhythm
    changed = replace(
        before,
        rhythm=wanted.rhythm,
        template=wanted.template,
        catch_up=wanted.catch_up,
        overlap=wanted.overlap,
        # A manual change leaves it with the application that declared it.
        owner=wanted.owner or before.owner,
        next_at=before.next_at if same else next_after(wanted.rhythm, now),
    )
    return before if changed == before else replace(changed, changed_at=now)


def pause(schedule: Schedule, *, now: int) -> Schedule:
    return replace(schedule, is_paused=True, changed_at=now)


def resume(schedule: Schedule, *, now: int) -> Schedule:
    """Resume it; firings missed during the pause are not made up for."""
    if not schedule.is_paused:
        return schedule
    next_at = next_after(schedule.rhythm, now)
    return replace(schedule, is_paused=False, next_at=next_at, changed_at=now)


def set_back(schedule: Schedule, *, now: int) -> Schedule:
    """Adapt to a store time that was ahead and was set back.

    A firing that came too early fires again at its time: only then can its work be done.
    """
    next_at = next_after(schedule.rhythm, now)
    if schedule.next_at is None or next_at is None or schedule.next_at <= next_at:
        return schedule
    return replace(schedule, next_at=next_at)


def _due(schedule: Schedule, now: int) -> list[int]:
    if schedule.next_at is None or schedule.next_at > now:
        return []
    due = [schedule.next_at]
    for at in instants(schedule.rhythm, schedule.next_at):
        if at > now or len(due) == MAX_MISSED:
            break
        due.append(at)
    return due


def _caught_up(policy: CatchUp, due: list[int], now: int) -> tuple[int, ...]:
    match policy:
        case CatchUp.ALL:
            return tuple(due)
        case CatchUp.ONE:
            return (due[-1],)
        case CatchUp.SKIP:
            return (due[-1],) if now - due[-1] <= LATE_MS else ()


def _to_text(instant: int) -> str:
    moment = moment_of(instant)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def owner_labels(owner: str, declared: Iterable[str]) -> dict[str, str]:
    """The labels of a worker with these declarations."""
    return {APPLICATION: owner, DECLARES: digest(declared)}


def digest(declared: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(set(declared))).encode()).hexdigest()[:16]


def is_dropped(schedule: Schedule, *, owner: str, declared: Collection[str], now: int) -> bool:
    """Whether this application declared it before, and no longer does."""
    is_mine = schedule.owner == owner and schedule.name not in declared
    return is_mine and now - schedule.created_at >= REGISTRATION_GRACE_MS


def is_contested(
    workers: Iterable[Worker], *, owner: str, declared: Iterable[str], now: int
) -> bool:
    """Whether another version of the application, with other declarations, is alive."""
    mine = digest(declared)
    return any(
        worker.labels.get(APPLICATION) == owner and worker.labels.get(DECLARES) != mine
        for worker in workers
        if is_alive(worker, now=now)
    )
