"""Answers in words from the pipeline's tables, and their advice turned into changes.

Advice is compared with the settings in force.  It is applied in a transaction that checks that they
are still in force; each change is recorded as a fact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from penstock.domain.circuit import overrides
from penstock.domain.circuit.overrides import NONE, BreakerOverrides, merge
from penstock.domain.circuit.settings import BreakerSettings, change
from penstock.domain.errors import AdviceOutdated
from penstock.domain.insights import breaker as breaker_question
from penstock.domain.insights import fleet as fleet_question
from penstock.domain.insights.answer import (
    Advice,
    Answer,
    CurrentState,
    Disk,
    SettingsInForce,
    SourceTables,
)
from penstock.domain.insights.questions import FLEET, Question, answer
from penstock.domain.lake.layout import dt_of, midnight_of
from penstock.domain.lake.tables import check_day
from penstock.domain.limits import DAY
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Work, read, write
from penstock.services.circuits.breaker import Breaker
from penstock.services.lake import Tables
from penstock.services.scaling import FleetProfile, ScalingService

DAYS = 28  # answered from by default: the newest


class AnswerService:
    def __init__(
        self,
        store: Store,
        tables: Tables,
        breaker: Breaker,
        scaling: ScalingService,
        *,
        disk: Callable[[], Disk | None],
    ) -> None:
        """`disk`: that of the store; None: not known."""
        self._store = store
        self._tables = tables
        self._breaker = breaker
        self._scaling = scaling
        self._disk = disk

    def tables(
        self, questions: Sequence[Question], *, from_day: str | None, to_day: str | None
    ) -> SourceTables:
        """The tables that the questions need.  Blocks; do not call from an event loop."""
        if from_day is not None:
            check_day("from_day", from_day)
        if to_day is not None:
            check_day("to_day", to_day)
        newest = self._tables.newest_day()
        if newest is None:
            return {}
        last = to_day or newest
        first = from_day or dt_of(midnight_of(last) - (DAYS - 1) * DAY)
        names = {name for question in questions for name in question.tables}
        return self._tables.streams(names, from_day=first, to_day=last)

    def in_force(self, question: Question) -> Work[list[SettingsInForce]]:
        """The settings that the advice on this question would change."""
        if question.name == FLEET:
            return self._scaling.profiles().map(_of_fleets)
        return read(self._store, self._of_routes)

    def answer(
        self, question: Question, tables: SourceTables, in_force: Sequence[SettingsInForce] | None
    ) -> Answer:
        """Blocks; do not call from an event loop: it reads the rows."""
        return answer(question, tables, CurrentState(in_force=in_force, disk=self._disk()))

    def apply(self, question: str, advice: Advice) -> Work[dict[str, int]]:
        """Apply the advice; returns the settings, which are in force then.

        Raises AdviceOutdated if other settings are in force than those it was compared with.
        """
        if advice.refusal is not None:
            raise AdviceOutdated(f"this advice cannot be applied: {advice.refusal}")
        if question == FLEET:
            return self._scaling.change_profile(
                advice.target, partial(_change_profile, advice)
            ).map(lambda profile: advice.settings)
        if advice.target == breaker_question.ALL_ROUTES:
            changed = self._breaker.change(partial(_change_breaker, advice))
            return changed.map(lambda settings: advice.settings)
        return write(self._store, lambda session: self._apply_to_circuit(session, advice))

    def _apply_to_circuit(self, session: Session, advice: Advice) -> dict[str, int]:
        own = self._breaker.overrides
        before = own.read(session).get(advice.target, NONE)
        _check(advice, _breaker_values(merge(self._breaker.read(session), before)))
        own.change(session, advice.target, partial(_change_overrides, advice))
        return advice.settings

    def _of_routes(self, session: Session) -> list[SettingsInForce]:
        """Those of routes with overrides, and those of all others."""
        defaults, own = self._breaker.read(session), self._breaker.overrides.read(session)
        by_route = {breaker_question.ANY_ROUTE: NONE} | dict(own)
        return [
            SettingsInForce(target=route, key=route, settings=_breaker_values(merge(defaults, one)))
            for route, one in by_route.items()
        ]


def _of_fleets(found: Sequence[FleetProfile]) -> list[SettingsInForce]:
    return [
        SettingsInForce(
            target=one.fleet,
            key=one.queues[0],
            settings=_profile_values(one) if one.is_replayed else None,
        )
        for one in found
    ]


def _breaker_values(settings: BreakerSettings) -> dict[str, int]:
    return {name: getattr(settings, name) for name in breaker_question.SETTINGS}


def _profile_values(one: FleetProfile) -> dict[str, int]:
    return {name: getattr(one.settings, name) for name in fleet_question.SETTINGS}


def _change_breaker(advice: Advice, before: BreakerSettings) -> BreakerSettings:
    _check(advice, _breaker_values(before))
    return change(advice.settings, before)


def _change_overrides(advice: Advice, before: BreakerOverrides) -> BreakerOverrides:
    return overrides.change(advice.settings, before)


def _change_profile(advice: Advice, before: FleetProfile) -> Mapping[str, Any]:
    _check(advice, _profile_values(before) if before.is_replayed else {})
    return advice.settings


def _check(advice: Advice, in_force: Mapping[str, int]) -> None:
    if in_force != advice.before:
        raise AdviceOutdated(
            f"the settings of {advice.target!r} have changed since the advice was computed; "
            "fetch the advice again"
        )


def current_advice(
    advice: Sequence[Advice],
    target: str,
    *,
    settings: Mapping[str, int],
    before: Mapping[str, int],
) -> Advice:
    """The advice on a target; raises AdviceOutdated if it is not as the caller has seen it."""
    found = next((one for one in advice if one.target == target), None)
    if found is None:
        raise AdviceOutdated(f"there is no advice on {target[:200]!r}")
    if (found.settings, found.before) != (settings, before):
        raise AdviceOutdated(
            f"the advice on {target!r} or the settings in force have changed since; "
            "fetch the advice again"
        )
    return found
