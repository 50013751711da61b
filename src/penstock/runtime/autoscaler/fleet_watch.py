"""One fleet under the eyes of the autoscaler: what is asked just now, and what is known."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any

import msgspec

from penstock.domain.scaling.fleet import Fleet
from penstock.domain.scaling.fleet_run import Cause, Decision, FleetState
from penstock.domain.scaling.fleet_sources import SourceSpec
from penstock.domain.scaling.fleet_status import (
    RECOVERED,
    TROUBLE,
    FleetStatus,
    FleetTrouble,
    LastChange,
    Note,
)
from penstock.domain.scaling.governor import FleetStanding
from penstock.domain.scaling.recommendation import Profile
from penstock.runtime.autoscaler.background import Aside
from penstock.runtime.autoscaler.questions import REPLICAS, SCALING, Answer, Fleetside, Wrong

_log = logging.getLogger("penstock.scaling")


class Plan(msgspec.Struct, frozen=True):
    """All that the file says about a fleet: a watch lasts as long as this stays the same."""

    group: str
    fleet: Fleet
    profile: Profile
    source: SourceSpec


class UnderWay(msgspec.Struct):
    future: Future[Any]
    since: int
    decision: Decision | None = None  # None: it is being asked
    is_late: bool = False


class Watch:
    def __init__(self, plan: Plan, side: Fleetside, *, seen_by: str, is_dry: bool) -> None:
        self.plan = plan
        self.fleet = plan.fleet
        self.side = side
        self.next_at = 0
        self.runs = 0
        self.under_way: UnderWay | None = None
        self.is_counted = False  # its replicas are known
        self.is_yielding = False
        self.noted: tuple[object, ...] = ()  # the last decision that became a fact
        self.is_changed = False  # since it was kept
        self.status = _fresh(plan, seen_by=seen_by, is_dry=is_dry)

    @property
    def name(self) -> str:
        return self.fleet.name

    @property
    def state(self) -> FleetState:
        return self.status.state

    @property
    def standing(self) -> FleetStanding:
        replicas = self.state.replicas if self.is_counted else None
        return FleetStanding(
            fleet=self.name,
            min=self.status.min,
            total=None if replicas is None else replicas.total,
            desired=self.state.desired,
            is_excused=self.is_yielding or self.has_trouble(REPLICAS, SCALING),
        )

    def adopt(self, left: FleetStatus | None, *, now: int) -> None:
        """Go on where another one has ended, unless that is too long ago to mean anything."""
        window_ms = self.plan.profile.samples_needed * self.fleet.interval_ms
        if (
            left is None
            or left.all_queues != self.fleet.all_queues
            or abs(now - left.seen_at) > window_ms
        ):
            return
        self.status = msgspec.structs.replace(
            self.status,
            state=left.state,
            replicas=left.replicas,
            made=left.made,
            troubles=left.troubles,
        )

    def forget(self) -> None:
        """Somebody else looks after it."""
        fresh = _fresh(self.plan, seen_by=self.status.seen_by, is_dry=self.status.is_dry)
        self.status, self.is_counted, self.is_yielding = fresh, False, False
        self.is_changed, self.noted, self.next_at = False, (), 0
        if self.under_way is not None:
            self.under_way.is_late = True  # what it says is of no use any more

    # ---- asking

    def ask(self, aside: Aside, *, is_dry: bool, now: int) -> None:
        self._begin(aside, lambda: self.side.look(is_dry=is_dry, now=now), None, now)

    def scale(self, aside: Aside, decision: Decision, *, now: int) -> None:
        wanted = decision.wanted
        self._begin(aside, lambda: self.side.scale_to(wanted, now=now), decision, now)

    def _begin(
        self, aside: Aside, what: Callable[[], Any], decision: Decision | None, now: int
    ) -> None:
        self.under_way = UnderWay(aside.begin(self.name, what), now, decision)

    # ---- knowing

    def know(self, **changes: Any) -> None:
        self.status = msgspec.structs.replace(self.status, **changes)
        self.is_changed = True

    def took(self, decision: Decision, *, is_done: bool, now: int) -> None:
        made = LastChange(
            at=now,
            change=decision.change,
            wanted=decision.wanted,
            reason=decision.reason,
            is_done=is_done,
        )
        self.know(made=made)

    def has_trouble(self, *parts: str) -> bool:
        return any(trouble.part in parts for trouble in self.status.troubles)

    def settle(self, parts: Sequence[str], wrong: Iterable[Wrong], *, now: int) -> list[Note]:
        """Of these parts these are in trouble now, and no others; what is new is told once."""
        before = {trouble.part: trouble for trouble in self.status.troubles}
        after = {part: trouble for part, trouble in before.items() if part not in parts}
        notes = []
        for one in wrong:
            known = before.get(one.part)
            is_new = known is None or known.code != one.code
            since = now if is_new or known is None else known.since
            after[one.part] = FleetTrouble(one.part, one.code, one.text, since)
            if is_new:
                _log.warning("fleet %s: %s (%s)", self.name, one.text, one.code)
                data = {"part": one.part, "code": one.code, "text": one.text}
                notes.append(Note(TROUBLE, self.name, data))
        for part in before.keys() - after.keys():
            notes.append(self._recovered(before[part], now))
        if after != before:
            self.know(troubles=tuple(after.values()))
        return notes

    def report_short(self) -> Note:
        text = f"{self.state.expected} workers were asked for and have not all appeared"
        _log.warning("fleet %s: %s", self.name, text)
        data = {"part": REPLICAS, "code": Cause.REPLICAS_MISSING.value, "text": text}
        return Note(TROUBLE, self.name, data)

    def _recovered(self, trouble: FleetTrouble, now: int) -> Note:
        _log.info("fleet %s: %s is well again", self.name, trouble.part)
        lasted_ms = now - trouble.since
        data = {"part": trouble.part, "code": trouble.code, "lasted_ms": lasted_ms}
        return Note(RECOVERED, self.name, data)


def answer_of(under_way: UnderWay) -> Answer:
    try:
        answer = under_way.future.result()
    except BaseException as error:  # the thread itself has died
        return Answer(wrong=(Wrong(REPLICAS, "internal", f"{type(error).__name__}: {error}"),))
    assert isinstance(answer, Answer)
    return answer


def outcome_of(under_way: UnderWay) -> tuple[Wrong, ...]:
    try:
        return tuple(under_way.future.result())
    except BaseException as error:
        return (Wrong(SCALING, "internal", f"{type(error).__name__}: {error}"),)


def _fresh(plan: Plan, *, seen_by: str, is_dry: bool) -> FleetStatus:
    fleet = plan.fleet
    return FleetStatus(
        name=fleet.name,
        group=plan.group,
        queue=fleet.all_queues[0],
        queues=fleet.queues,
        source=fleet.source,
        profile=fleet.profile,
        kind=str(fleet.replicas.__struct_config__.tag),
        min=fleet.min,
        max=fleet.max,
        interval_ms=fleet.interval_ms,
        seen_at=0,
        seen_by=seen_by,
        is_dry=is_dry,
    )
