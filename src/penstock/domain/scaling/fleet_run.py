"""One run of a fleet: from readings to a decision, as pure functions.

In this order: a fleet under pressure yields, whatever else is true; worker counts that changed by
themselves must be seen twice; a fleet that was just scaled cools down; requested workers are waited
for; then the analyser recommends, circuits may forbid, and the governor limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import msgspec

from penstock.domain.described import about
from penstock.domain.scaling.fleet import Fleet
from penstock.domain.scaling.governor import FleetNeed, GovernedChange, govern
from penstock.domain.scaling.least_needed import RecentPeaks, least_needed, remember
from penstock.domain.scaling.recommendation import (
    Inputs,
    Profile,
    ReadingWindow,
    Recommendation,
    Replicas,
    Sample,
    analyse,
)

MAX_UNEXPLAINED_COUNTS = 3  # this many unexplained counts in a row are reported as trouble


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


class CircuitsState(StrEnum):
    """The worst state of the circuits that a fleet's work passes through."""

    FREE = "free"
    HALF_OPEN = "half_open"
    OPEN = "open"


class FleetReading(msgspec.Struct, frozen=True, kw_only=True):
    replicas: Replicas
    sample: Sample | None = None
    trouble: str | None = None  # error code, if there is no reading
    level: int = 0  # of pressure
    yields: bool = False
    circuits: CircuitsState = CircuitsState.FREE


class FleetState(msgspec.Struct, frozen=True, kw_only=True):
    """State between runs; kept in the store, so that any node can continue."""

    window: ReadingWindow = ReadingWindow()
    replicas: Replicas | None = None  # as last reported
    expected: int | None = None  # what was requested last
    odd_counts: int = 0
    cooling_runs: int = 0  # runs still to be skipped
    cooling_until: int = 0
    # When workers were requested that the manager knows of but that do not run yet.
    missing_since: int | None = None
    recent_peaks: RecentPeaks = msgspec.field(default=RecentPeaks(), name="memory")
    desired: int | None = None
    wanted: int | None = None  # the last decision


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    change: Annotated[int, about("The number of workers added; negative: removed.")]
    wanted: Annotated[int, about("How many workers there should be.")]
    reason: Annotated[str, about("Why: one of the reasons that docs/autoscaling.md lists.")]
    level: Annotated[int, about("The level of pressure, from 0 to 3.")] = 0
    recommended: Annotated[
        int | None, about("The change that the analyser recommended, before any limit.")
    ] = None
    because: Annotated[str | None, about("Why the analyser recommended it.")] = None
    inputs: Annotated[
        Inputs | None, about("What the recommendation is based on; null: there was none.")
    ] = None

    @property
    def is_made(self) -> bool:
        """Whether it is a new decision; otherwise the last wanted number is still valid."""
        return self.inputs is not None and self.inputs.needed is not None


def run(
    state: FleetState,
    reading: FleetReading,
    fleet: Fleet,
    profile: Profile,
    others: Sequence[FleetNeed],
    *,
    now: int,
) -> tuple[FleetState, Decision]:
    before, replicas = state, reading.replicas
    is_odd = not _is_explained(before, replicas)
    state = msgspec.structs.replace(
        state,
        replicas=replicas,
        odd_counts=before.odd_counts + 1 if is_odd else 0,
        # Once the request is met or withdrawn, the wait is over: a later drop of the count is a
        # change like any other.
        missing_since=before.missing_since if _lacks(replicas) else None,
    )
    if reading.yields:
        # Including requested workers that do not run yet.
        return _end(state, reading, Cause.PRESSURE, change=-max(replicas.total, replicas.requested))
    if is_odd:
        return _end(state, reading, Cause.COUNT_CHANGED)
    if state.cooling_runs or now < state.cooling_until:
        left = max(0, state.cooling_runs - 1)
        state = msgspec.structs.replace(state, cooling_runs=left)
        return _end(state, reading, Cause.COOLING_DOWN)
    if _is_waited_for(state, fleet, now=now):
        return _end(state, reading, Cause.REPLICAS_MISSING)
    return _analyse(state, reading, fleet, profile, others, now=now)


def record_scaling(state: FleetState, decision: Decision, fleet: Fleet, *, now: int) -> FleetState:
    """Call it after the change was made."""
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


def record_attempt(state: FleetState, decision: Decision) -> FleetState:
    """Call it if the change failed or its outcome is unknown: part of it may have been made."""
    return msgspec.structs.replace(state, expected=decision.wanted)


def is_short(state: FleetState, replicas: Replicas, fleet: Fleet, *, now: int) -> bool:
    """Whether requested workers have not appeared within `patience_ms`."""
    since = state.missing_since
    return since is not None and now - since >= fleet.patience_ms and _lacks(replicas)


def record_shortage(state: FleetState) -> FleetState:
    """The shortage was reported: stop waiting for these workers."""
    return msgspec.structs.replace(state, missing_since=None, expected=None)


def give_up_worker(state: FleetState) -> tuple[FleetState, Decision]:
    """Give up one worker for another fleet."""
    assert state.replicas is not None
    decision = _decision(FleetReading(replicas=state.replicas), Cause.MAKING_ROOM, change=-1)
    changed = msgspec.structs.replace(state, expected=decision.wanted, wanted=decision.wanted)
    return changed, decision


def _analyse(
    state: FleetState,
    reading: FleetReading,
    fleet: Fleet,
    profile: Profile,
    others: Sequence[FleetNeed],
    *,
    now: int,
) -> tuple[FleetState, Decision]:
    replicas = reading.replicas
    change, why, recommended = 0, reading.trouble or "", None
    if reading.sample is not None:
        window, recommended = analyse(state.window, reading.sample, replicas, profile)
        state = msgspec.structs.replace(
            state,
            window=window,
            recent_peaks=remember(state.recent_peaks, recommended, fleet, now=now),
            desired=_desired_count(recommended, replicas, state),
        )
        change, why = _limit_by_circuits(recommended, reading.circuits, replicas)
        if change < 0:
            least = least_needed(state.recent_peaks, recommended, fleet, now=now)
            change, why = _steady(change, why, replicas, least)
    governed = govern(change, total=replicas.total, least=fleet.min, most=fleet.max, others=others)
    reason = governed.bound or why
    decision = _decision(reading, reason, change=governed.change, recommended=recommended)
    return _remember(state, decision, fleet, governed), decision


def _limit_by_circuits(
    recommended: Recommendation, circuits: CircuitsState, replicas: Replicas
) -> tuple[int, str]:
    """No more workers while a circuit is open; one while it is half-open."""
    if recommended.change > 0 and circuits is CircuitsState.OPEN:
        return 0, Cause.CIRCUIT_OPEN
    if recommended.change > 0 and circuits is CircuitsState.HALF_OPEN and replicas.total:
        return 0, Cause.CIRCUIT_HALF_OPEN
    if circuits is CircuitsState.HALF_OPEN and recommended.change > 1:
        return 1, Cause.CIRCUIT_HALF_OPEN
    return recommended.change, recommended.reason


def _steady(change: int, why: str, replicas: Replicas, least: int) -> tuple[int, str]:
    steadied = min(0, max(change, least - replicas.total))
    return (change, why) if steadied == change else (steadied, Cause.STEADYING)


def _desired_count(
    recommended: Recommendation, replicas: Replicas, state: FleetState
) -> int | None:
    """As autoscale-core computes it, but a run that only gathers samples keeps the last value."""
    if recommended.change:
        return max(0, replicas.running + recommended.change)
    return state.desired if recommended.inputs.needed is None else replicas.total


def _remember(
    state: FleetState, decision: Decision, fleet: Fleet, governed: GovernedChange
) -> FleetState:
    is_new = governed.change or decision.is_made or state.wanted is None
    wanted = decision.wanted if is_new else state.wanted
    assert wanted is not None
    return msgspec.structs.replace(state, wanted=min(max(wanted, fleet.min), fleet.max))


def _is_explained(state: FleetState, replicas: Replicas) -> bool:
    """Whether the count is unchanged, or is approaching the requested one."""
    if state.replicas is None:
        return True
    before = state.replicas.total
    after = before if state.expected is None else state.expected
    return min(before, after) <= replicas.total <= max(before, after)


def _is_waited_for(state: FleetState, fleet: Fleet, *, now: int) -> bool:
    since = state.missing_since
    return since is not None and now - since < fleet.patience_ms


def _lacks(replicas: Replicas) -> bool:
    """Whether workers are missing by the manager's report, not by our requests.

    A worker that ran and exited between two readings did appear, and a withdrawn request brings no
    worker.
    """
    return replicas.requested > replicas.total


def _end(
    state: FleetState, reading: FleetReading, cause: Cause, *, change: int = 0
) -> tuple[FleetState, Decision]:
    decision = _decision(reading, cause, change=change)
    if cause is Cause.PRESSURE:
        state = msgspec.structs.replace(state, wanted=0, missing_since=None)
    return state, decision


def _decision(
    reading: FleetReading,
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
