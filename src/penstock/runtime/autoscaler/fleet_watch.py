"""One fleet as the autoscaler sees it: the pending call, and the current status."""

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
    NewFact,
)
from penstock.domain.scaling.governor import FleetNeed
from penstock.domain.scaling.recommendation import Profile
from penstock.runtime.autoscaler.fleet_access import (
    REPLICAS,
    SCALING,
    Background,
    FleetAccess,
    Observation,
    PartFailure,
)

_log = logging.getLogger("penstock.scaling")


class FleetPlan(msgspec.Struct, frozen=True):
    """A fleet's configuration from the file and the store; the watch is kept until this changes."""

    group: str
    fleet: Fleet
    profile: Profile  # in force: the file's with the overrides
    source: SourceSpec
    file_profile: Profile | None = None


class PendingCall(msgspec.Struct):
    future: Future[Any]
    since: int
    decision: Decision | None = None  # that it carries out; None: the call observes
    is_late: bool = False


class FleetWatch:
    def __init__(self, plan: FleetPlan, access: FleetAccess, *, seen_by: str, is_dry: bool) -> None:
        self.plan = plan
        self.fleet = plan.fleet
        self.access = access
        self.next_at = 0
        self.runs = 0
        self.pending: PendingCall | None = None
        self.is_counted = False  # the number of replicas is known
        self.is_yielding = False
        self.noted: tuple[object, ...] = ()  # the last decision that became a fact
        self.is_changed = False  # since the status was stored
        self.status = _fresh(plan, seen_by=seen_by, is_dry=is_dry)

    @property
    def name(self) -> str:
        return self.fleet.name

    @property
    def state(self) -> FleetState:
        return self.status.state

    @property
    def need(self) -> FleetNeed:
        replicas = self.state.replicas if self.is_counted else None
        return FleetNeed(
            fleet=self.name,
            min=self.status.min,
            total=None if replicas is None else replicas.total,
            desired=self.state.desired,
            is_excused=self.is_yielding or self.has_trouble(REPLICAS, SCALING),
        )

    def adopt(self, status: FleetStatus | None, *, now: int) -> None:
        """Continue from the status of the previous leader, unless it is out of date."""
        window_ms = self.plan.profile.samples_needed * self.fleet.interval_ms
        if (
            status is None
            or status.all_queues != self.fleet.all_queues
            or abs(now - status.seen_at) > window_ms
        ):
            return
        self.status = msgspec.structs.replace(
            self.status,
            state=status.state,
            replicas=status.replicas,
            made=status.made,
            troubles=status.troubles,
        )

    def forget(self) -> None:
        """Start over: another autoscaler has become the leader."""
        fresh = _fresh(self.plan, seen_by=self.status.seen_by, is_dry=self.status.is_dry)
        self.status, self.is_counted, self.is_yielding = fresh, False, False
        self.is_changed, self.noted, self.next_at = False, (), 0
        if self.pending is not None:
            self.pending.is_late = True  # its answer is not needed any more

    # ---- calls

    def observe(self, background: Background, *, is_dry: bool, now: int) -> None:
        self._begin(background, lambda: self.access.observe(is_dry=is_dry, now=now), None, now)

    def scale(self, background: Background, decision: Decision, *, now: int) -> None:
        wanted = decision.wanted
        self._begin(background, lambda: self.access.scale_to(wanted, now=now), decision, now)

    def _begin(
        self, background: Background, what: Callable[[], Any], decision: Decision | None, now: int
    ) -> None:
        self.pending = PendingCall(background.begin(self.name, what), now, decision)

    # ---- status

    def update(self, **changes: Any) -> None:
        self.status = msgspec.structs.replace(self.status, **changes)
        self.is_changed = True

    def record_decision(self, decision: Decision, *, is_done: bool, now: int) -> None:
        made = LastChange(
            at=now,
            change=decision.change,
            wanted=decision.wanted,
            reason=decision.reason,
            is_done=is_done,
        )
        self.update(made=made)

    def has_trouble(self, *parts: str) -> bool:
        return any(trouble.part in parts for trouble in self.status.troubles)

    def set_troubles(
        self, parts: Sequence[str], failures: Iterable[PartFailure], *, now: int
    ) -> list[NewFact]:
        """Replace the troubles of these parts; new ones and recoveries become facts, once each."""
        before = {trouble.part: trouble for trouble in self.status.troubles}
        after = {part: trouble for part, trouble in before.items() if part not in parts}
        facts = []
        for one in failures:
            known = before.get(one.part)
            is_new = known is None or known.code != one.code
            since = now if is_new or known is None else known.since
            after[one.part] = FleetTrouble(one.part, one.code, one.text, since)
            if is_new:
                _log.warning("fleet %s: %s (%s)", self.name, one.text, one.code)
                data = {"part": one.part, "code": one.code, "text": one.text}
                facts.append(NewFact(TROUBLE, self.name, data))
        for part in before.keys() - after.keys():
            facts.append(self._note_recovery(before[part], now))
        if after != before:
            self.update(troubles=tuple(after.values()))
        return facts

    def report_short(self) -> NewFact:
        text = f"{self.state.expected} workers were requested, and not all have appeared"
        _log.warning("fleet %s: %s", self.name, text)
        data = {"part": REPLICAS, "code": Cause.REPLICAS_MISSING.value, "text": text}
        return NewFact(TROUBLE, self.name, data)

    def _note_recovery(self, trouble: FleetTrouble, now: int) -> NewFact:
        _log.info("fleet %s: %s has recovered", self.name, trouble.part)
        lasted_ms = now - trouble.since
        data = {"part": trouble.part, "code": trouble.code, "lasted_ms": lasted_ms}
        return NewFact(RECOVERED, self.name, data)


def answer_of(pending: PendingCall) -> Observation:
    try:
        answer = pending.future.result()
    except BaseException as error:  # the thread itself has failed
        return Observation(
            failures=(PartFailure(REPLICAS, "internal", f"{type(error).__name__}: {error}"),)
        )
    assert isinstance(answer, Observation)
    return answer


def outcome_of(pending: PendingCall) -> tuple[PartFailure, ...]:
    try:
        return tuple(pending.future.result())
    except BaseException as error:
        return (PartFailure(SCALING, "internal", f"{type(error).__name__}: {error}"),)


def _fresh(plan: FleetPlan, *, seen_by: str, is_dry: bool) -> FleetStatus:
    fleet = plan.fleet
    return FleetStatus(
        name=fleet.name,
        group=plan.group,
        queue=fleet.all_queues[0],
        queues=fleet.queues,
        source=fleet.source,
        profile=fleet.profile,
        file_profile=plan.file_profile,
        kind=str(fleet.replicas.__struct_config__.tag),
        min=fleet.min,
        max=fleet.max,
        interval_ms=fleet.interval_ms,
        seen_at=0,
        seen_by=seen_by,
        is_dry=is_dry,
    )
