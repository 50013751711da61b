"""One run of a fleet: from readings to a decision, as a value in and a value out.

In this order: a fleet yields to pressure whatever else holds; counts that changed by themselves
must be seen twice; a fleet that was just scaled cools down; requested workers are waited for; then
the analyser recommends, circuits forbid, and the governor limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.domain.scaling.fleet import Fleet
from penstock.domain.scaling.governor import Governed, Standing, govern
from penstock.domain.scaling.recommendation import (
    Inputs,
    Profile,
    Recommendation,
    Replicas,
    Sample,
    Window,
    analyse,
)
from penstock.domain.scaling.thrashing import Memory, least_needed, remember

FLAPPING = 3  # this many unexplained counts in a row are reported as trouble


class Cause(StrEnum):
    """Why a run ended before the governor.  Stable, as `scaling.Reason` is."""

    PRESSURE = "pressure"
    COUNT_CHANGED = "count_changed"
    COOLING_DOWN = "cooling_down"
    REPLICAS_MISSING = "replicas_missing"
    MAKING_ROOM = "making_room"
    CIRCUIT_OPEN = "circuit_open"
    CIRCUIT_HALF_OPEN = "circuit_half_open"
    STEADYING = "steadying"


class Way(StrEnum):
    """The worst state of the circuits that a fleet's work passes through."""

    FREE = "free"
    HALF_OPEN = "half_open"
    OPEN = "open"


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    replicas: Replicas
    sample: Sample | None = None
    trouble: str | None = None  # the code of why there is no sample
    level: int = 0  # of pressure
    yields: bool = False
    way: Way = Way.FREE


class FleetState(msgspec.Struct, frozen=True, kw_only=True):
    """State between runs; kept in the store, so that any node can continue."""

    window: Window = Window()
    replicas: Replicas | None = None  # as last reported
    expected: int | None = None  # what was requested last
    odd_counts: int = 0
    cooling_runs: int = 0  # runs still to be skipped
    cooling_until: int = 0
    # When workers were requested that the manager knows of but that do not run yet.
    missing_since: int | None = None
    memory: Memory = Memory()
    desired: int | None = None
    wanted: int | None = None  # the last decision


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    change: Annotated[int, Meta(description="The number of workers added; negative: removed.")]
    wanted: Annotated[int, Meta(description="How many workers there should be.")]
    reason: Annotated[
        str, Meta(description="Why: one of the reasons that docs/autoscaling.md lists.")
    ]
    level: Annotated[int, Meta(description="The level of pressure, from 0 to 3.")] = 0
    recommended: Annotated[
        int | None, Meta(description="The change that the analyser recommended, before any limit.")
    ] = None
    because: Annotated[str | None, Meta(description="Why the analyser recommended it.")] = None
    inputs: Annotated[
        Inputs | None,
        Meta(description="What the recommendation is based on; null: the run ended before."),
    ] = None

    @property
    def is_made(self) -> bool:
        """Otherwise nothing is new, and the last wanted number still holds."""
        return self.inputs is not None and self.inputs.needed is not None


def run(
    state: FleetState,
    reading: Reading,
    fleet: Fleet,
    profile: Profile,
    others: Sequence[Standing],
    *,
    now: int,
) -> tuple[FleetState, Decision]:
    before, told = state, reading.replicas
    is_odd = not _is_explained(before, told)
    state = msgspec.structs.replace(
        state,
        replicas=told,
        odd_counts=before.odd_counts + 1 if is_odd else 0,
        # Once the request is met or withdrawn, the wait is over for good: a later fall of the
        # count is a change like any other.
        missing_since=before.missing_since if _lacks(told) else None,
    )
    if reading.yields:
        # Also those that are still waited for.
        return _ended(state, reading, Cause.PRESSURE, change=-max(told.total, told.requested))
    if is_odd:
        return _ended(state, reading, Cause.COUNT_CHANGED)
    if state.cooling_runs or now < state.cooling_until:
        left = max(0, state.cooling_runs - 1)
        state = msgspec.structs.replace(state, cooling_runs=left)
        return _ended(state, reading, Cause.COOLING_DOWN)
    if _is_waited_for(state, fleet, now=now):
        return _ended(state, reading, Cause.REPLICAS_MISSING)
    return _analysed(state, reading, fleet, profile, others, now=now)


def scaled(state: FleetState, decision: Decision, fleet: Fleet, *, now: int) -> FleetState:
    """After the change was made."""
    is_up = decision.change > 0
    runs = fleet.cooldown_up_runs if is_up else fleet.cooldown_down_runs
    pause_ms = fleet.cooldown_up_ms if is_up else fleet.cooldown_down_ms
    return msgspec.structs.replace(
        state,
        expected=decision.wanted,
        cooling_runs=fleet.cooldown_runs if runs is None else runs,
        cooling_until=now + pause_ms if pause_ms else 0,
        missing_since=now if is_up else None,
        wanted=decision.wanted,
    )


def attempted(state: FleetState, decision: Decision) -> FleetState:
    """After the change failed or its outcome is unknown: part of it may have been made."""
    return msgspec.structs.replace(state, expected=decision.wanted)


def is_short(state: FleetState, told: Replicas, fleet: Fleet, *, now: int) -> bool:
    """Requested workers have not appeared, and patience has run out."""
    since = state.missing_since
    return since is not None and now - since >= fleet.patience_ms and _lacks(told)


def found_short(state: FleetState) -> FleetState:
    """It was reported, and is not waited for any longer."""
    return msgspec.structs.replace(state, missing_since=None, expected=None)


def gives_one(state: FleetState) -> tuple[FleetState, Decision]:
    """One of its workers makes room for another fleet."""
    assert state.replicas is not None
    decision = _decision(Reading(replicas=state.replicas), Cause.MAKING_ROOM, change=-1)
    changed = msgspec.structs.replace(state, expected=decision.wanted, wanted=decision.wanted)
    return changed, decision


def _analysed(
    state: FleetState,
    reading: Reading,
    fleet: Fleet,
    profile: Profile,
    others: Sequence[Standing],
    *,
    now: int,
) -> tuple[FleetState, Decision]:
    told = reading.replicas
    change, why, recommended = 0, reading.trouble or "", None
    if reading.sample is not None:
        window, recommended = analyse(state.window, reading.sample, told, profile)
        state = msgspec.structs.replace(
            state,
            window=window,
            memory=remember(state.memory, recommended, fleet, now=now),
            desired=_desired(recommended, told, state),
        )
        change, why = _on_this_way(recommended, reading.way, told)
        if change < 0:
            least = least_needed(state.memory, recommended, fleet, now=now)
            change, why = _steadied(change, why, told, least)
    governed = govern(change, total=told.total, least=fleet.min, most=fleet.max, others=others)
    reason = governed.bound or why
    decision = _decision(reading, reason, change=governed.change, recommended=recommended)
    return _remembering(state, decision, fleet, governed), decision


def _on_this_way(recommended: Recommendation, way: Way, told: Replicas) -> tuple[int, str]:
    """No more workers while a circuit is open; one while it is half-open."""
    if recommended.change > 0 and way is Way.OPEN:
        return 0, Cause.CIRCUIT_OPEN
    if recommended.change > 0 and way is Way.HALF_OPEN and told.total:
        return 0, Cause.CIRCUIT_HALF_OPEN
    if way is Way.HALF_OPEN and recommended.change > 1:
        return 1, Cause.CIRCUIT_HALF_OPEN
    return recommended.change, recommended.reason


def _steadied(change: int, why: str, told: Replicas, least: int) -> tuple[int, str]:
    steadied = min(0, max(change, least - told.total))
    return (change, why) if steadied == change else (steadied, Cause.STEADYING)


def _desired(recommended: Recommendation, told: Replicas, state: FleetState) -> int | None:
    """As autoscale-core computes it, but a run that only gathers samples keeps the last value."""
    if recommended.change:
        return max(0, told.running + recommended.change)
    return state.desired if recommended.inputs.needed is None else told.total


def _remembering(
    state: FleetState, decision: Decision, fleet: Fleet, governed: Governed
) -> FleetState:
    is_new = governed.change or decision.is_made or state.wanted is None
    wanted = decision.wanted if is_new else state.wanted
    assert wanted is not None
    return msgspec.structs.replace(state, wanted=min(max(wanted, fleet.min), fleet.max))


def _is_explained(state: FleetState, told: Replicas) -> bool:
    """Nothing has changed, or the count is on its way to what was requested."""
    if state.replicas is None:
        return True
    before = state.replicas.total
    after = before if state.expected is None else state.expected
    return min(before, after) <= told.total <= max(before, after)


def _is_waited_for(state: FleetState, fleet: Fleet, *, now: int) -> bool:
    since = state.missing_since
    return since is not None and now - since < fleet.patience_ms


def _lacks(replicas: Replicas) -> bool:
    """The manager's word counts, not what was asked of it: a worker that ran and exited between
    two looks was there, and a request that was withdrawn brings no worker."""
    return replicas.requested > replicas.total


def _ended(
    state: FleetState, reading: Reading, cause: Cause, *, change: int = 0
) -> tuple[FleetState, Decision]:
    decision = _decision(reading, cause, change=change)
    if cause is Cause.PRESSURE:
        state = msgspec.structs.replace(state, wanted=0, missing_since=None)
    return state, decision


def _decision(
    reading: Reading,
    reason: str,
    *,
    change: int,
    recommended: Recommendation | None = None,
) -> Decision:
    return Decision(
        change=change,
        wanted=max(0, reading.replicas.total + change),
        reason=str(reason),
        level=reading.level,
        recommended=recommended.change if recommended else None,
        because=str(recommended.reason) if recommended else None,
        inputs=recommended.inputs if recommended else None,
    )
