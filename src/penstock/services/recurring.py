"""Recurring work: declare, read, pause, run now; and the steps that the duty runs to fire it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress

from penstock.api.recurring import MAX_PREVIEW
from penstock.domain.errors import (
    InvalidRequest,
    MessageNotFound,
    PenstockError,
    ScheduleNotFound,
    WrongState,
)
from penstock.domain.limits import Limits
from penstock.domain.message import lifecycle
from penstock.domain.message.draft import ID_DIGITS, NewMessage, is_label, send, uuid7
from penstock.domain.message.lifecycle import LIVE
from penstock.domain.schedule import schedule as schedules
from penstock.domain.schedule.schedule import RETIRED, CatchUp, Overlap, Rhythm, Schedule, Template
from penstock.domain.worker import Worker
from penstock.ports.clock import Clock, Dice
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import ThreadedStep, Work, read, write

REPLACED = "replaced"  # why an earlier firing was cancelled
_PAGE = 1_000

May = Callable[[Schedule], bool]


class RecurringService:
    def __init__(self, store: Store, clock: Clock, dice: Dice, limits: Limits) -> None:
        self._store = store
        self._clock = clock
        self._dice = dice
        self._limits = limits

    def declare(
        self,
        name: str,
        rhythm: Rhythm,
        template: Template,
        *,
        catch_up: CatchUp = CatchUp.ONE,
        overlap: Overlap = Overlap.ALLOW,
        owner: str | None = None,
    ) -> Work[Schedule]:
        """Create or change it; an identical declaration changes nothing, not even the next firing.

        `owner`: the application that declares it, which may `retire` it later.
        Raises InvalidRequest at once or when it runs, and QueueNotFound when it runs.
        """
        schedules.check(name, rhythm, template)
        now = self._clock.now()
        wanted = Schedule(
            name=name,
            rhythm=rhythm,
            template=template,
            catch_up=catch_up,
            overlap=overlap,
            created_at=now,
            changed_at=now,
            owner=None if owner is None else self._check_owner(owner),
        )

        def do(session: Session) -> Schedule:
            self._new(session, wanted, now, now=now)  # refuse at once what cannot be sent
            before = session.schedules.lock(name)
            if before is None:
                made = schedules.declare(None, wanted, now=now)
                if session.schedules.add(made):
                    return made
                before = session.schedules.lock(name)  # another node was faster
            after = schedules.declare(before, wanted, now=now)
            if after != before:
                session.schedules.save(after)
            return after

        return write(self._store, do)

    def get(self, name: str) -> Work[Schedule]:
        return read(self._store, lambda session: _existing(session.schedules.find(name), name))

    def page(self, *, after: str = "", limit: int = 100) -> Work[list[Schedule]]:
        if not 1 <= limit <= _PAGE:
            raise InvalidRequest(f"limit must be from 1 to {_PAGE}")
        return read(self._store, lambda session: session.schedules.page(after=after, limit=limit))

    def remove(self, name: str) -> Work[None]:
        """Remove the schedule; messages that it has sent stay."""

        def do(session: Session) -> None:
            if not session.schedules.remove(name):
                raise ScheduleNotFound(name)

        return write(self._store, do)

    def dropped(
        self, owner: str, declared: Collection[str], *, may: May = lambda _: True
    ) -> Work[list[str]]:
        """Names of schedules that this application declared earlier and no longer declares.

        Empty while workers of another version of it are alive.  `may`: which names to consider.
        """
        now = self._clock.now()
        return read(
            self._store,
            lambda session: [
                schedule.name for schedule in _find_dropped(session, owner, declared, may, now=now)
            ],
        )

    def retire(
        self, owner: str, declared: Collection[str], *, may: May = lambda _: True
    ) -> Work[list[str]]:
        """Remove dropped schedules, with a fact for each; messages that they have sent stay."""
        now = self._clock.now()

        def do(session: Session) -> list[str]:
            names = []
            for schedule in _find_dropped(session, owner, declared, may, now=now):
                if session.schedules.remove(schedule.name):
                    names.append(schedule.name)
                    session.facts.add(
                        RETIRED, schedule.name, at=now, data=_declared_fields(schedule)
                    )
            return names

        return write(self._store, do)

    def pause(self, name: str) -> Work[Schedule]:
        return self._change(name, schedules.pause)

    def resume(self, name: str) -> Work[Schedule]:
        """Resume it; firings missed during the pause are not made up for."""
        return self._change(name, schedules.resume)

    def _change(self, name: str, change: Callable[..., Schedule]) -> Work[Schedule]:
        now = self._clock.now()

        def do(session: Session) -> Schedule:
            found = _existing(session.schedules.lock(name), name)
            return _save(session, change(found, now=now))

        return write(self._store, do)

    def run_now(self, name: str) -> Work[str]:
        """Send it once more, now, whether it is paused or not; returns the message's id."""
        now = self._clock.now()

        def do(session: Session) -> str:
            found = _existing(session.schedules.lock(name), name)
            [message_id] = self._send(session, found, [now], now=now)
            _save(session, schedules.record_run(found, message_id=message_id, now=now))
            return message_id

        return write(self._store, do)

    def preview(
        self, rhythm: Rhythm, *, count: int, after: int | None = None
    ) -> ThreadedStep[list[int]]:
        """The next instants of a rhythm, which need not be declared."""
        if not 1 <= count <= MAX_PREVIEW:
            raise InvalidRequest(f"count must be from 1 to {MAX_PREVIEW}")
        schedules.check_rhythm(rhythm)
        start = self._clock.now() if after is None else after
        # Finding a thousand firings that are years apart takes half a second.
        return ThreadedStep(lambda: schedules.preview(rhythm, after=start, count=count))

    def due(
        self, *, now: int, limit: int, after: tuple[int, str] = (-1, "")
    ) -> Work[list[tuple[int, str]]]:
        """Due instants and names, the longest due first."""
        return read(self._store, lambda s: s.schedules.due(now=now, limit=limit, after=after))

    def next_at(self, *, now: int) -> Work[int | None]:
        """When the next schedule that is not due yet falls due."""
        return read(self._store, lambda session: session.schedules.next_at(now=now))

    def fire(self, name: str, *, now: int) -> Work[Schedule | None]:
        """Send and record what is due, in one transaction.

        None if this node has nothing to do: another node has locked it, or has fired it.
        """

        def do(session: Session) -> Schedule | None:
            found = session.schedules.lock_due(name, now=now)
            if found is None:
                return None
            replaced = found.last_id if found.overlap is Overlap.REPLACE else None
            try:
                plan = schedules.plan(found, now=now, is_busy=_is_busy(session, found))
                if plan.is_held:
                    return found
                sent = self._send(session, found, plan.fire_at, now=now, before=replaced)
            except PenstockError as error:
                return _save(session, schedules.record_failure(found, str(error)))
            # If the send was deduplicated, the previous message also stands for this firing.
            if replaced is not None and sent and replaced not in sent:
                _cancel(session, replaced, now=now)
            return _save(session, schedules.advance(found, plan, sent=sent))

        return write(self._store, do)

    def _check_owner(self, owner: str) -> str:
        if not is_label(owner, self._limits):
            most = self._limits.max_label_chars
            raise InvalidRequest(f"owner has 1 to {most} characters, none of them NUL")
        return owner

    def _send(
        self,
        session: Session,
        schedule: Schedule,
        fire_at: Sequence[int],
        *,
        now: int,
        before: str | None = None,
    ) -> list[str]:
        """The ids in order; fewer than requested if the queue is full, but at least one."""
        new = [self._new(session, schedule, at, now=now) for at in fire_at]
        answers = session.send(new, before=before) if new else []
        sent = [answer.id for answer in answers if not isinstance(answer, PenstockError)]
        if new and not sent:
            raise next(answer for answer in answers if isinstance(answer, PenstockError))
        return sent

    def _new(self, session: Session, schedule: Schedule, fire_at: int, *, now: int) -> NewMessage:
        return send(
            schedule.template.draft(schedule.name, fire_at=fire_at),
            session.queues.named(schedule.template.queue),
            now=now,
            message_id=uuid7(now, self._dice.digits(ID_DIGITS)),
            limits=self._limits,
        )


def _find_dropped(
    session: Session, owner: str, declared: Collection[str], may: May, *, now: int
) -> list[Schedule]:
    found = [
        schedule
        for schedule in session.schedules.of_owner(owner)
        if schedules.is_dropped(schedule, owner=owner, declared=declared, now=now) and may(schedule)
    ]
    if found and schedules.is_contested(_workers(session), owner=owner, declared=declared, now=now):
        return []
    return found


def _workers(session: Session) -> Iterator[Worker]:
    after = ""
    while page := session.workers.page(after=after, limit=_PAGE, with_gone=False):
        yield from page
        after = page[-1].id


def _declared_fields(schedule: Schedule) -> dict[str, object]:
    template = schedule.template
    return {
        "owner": schedule.owner,
        "queue": template.queue,
        "kind": template.kind,
        "fired": schedule.fired_total,
    }


def _is_busy(session: Session, schedule: Schedule) -> bool:
    """Whether its last message is unfinished; a dead letter has ended, even if claimable."""
    if schedule.overlap is Overlap.ALLOW or schedule.last_id is None:
        return False
    message = session.messages.find(schedule.last_id)
    return message is not None and message.state in LIVE and message.dead_from is None


def _cancel(session: Session, message_id: str, *, now: int) -> None:
    with suppress(WrongState, MessageNotFound):  # it is or was being handled
        session.messages.change(
            message_id, lambda m, _: lifecycle.cancel(m, reason=REPLACED), now=now
        )


def _save(session: Session, schedule: Schedule) -> Schedule:
    session.schedules.save(schedule)
    return schedule


def _existing(schedule: Schedule | None, name: str) -> Schedule:
    if schedule is None:
        raise ScheduleNotFound(name)
    return schedule
