"""A recommendation within limits: the governor of autoscale-core, as pure functions.

Fleets below their minimum come first: while there is one, the others get no more workers, and give
up a tenth of theirs each time they ask for more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import StrEnum

import msgspec


class Bound(StrEnum):
    """Why a recommendation was changed.  Stable, as `scaling.Reason` is."""

    BELOW_MINIMUM = "below_minimum"
    AT_MINIMUM = "at_minimum"
    ABOVE_MAXIMUM = "above_maximum"
    AT_MAXIMUM = "at_maximum"
    OTHERS_FIRST = "others_first"


class FleetNeed(msgspec.Struct, frozen=True, kw_only=True):
    """How many workers a fleet has and needs, as the other fleets see it."""

    fleet: str
    min: int
    total: int | None = None  # None: unknown
    desired: int | None = None  # its last recommendation, before any limit
    is_excused: bool = False  # below its minimum for a reason that more room would not fix

    @property
    def is_served(self) -> bool:
        """Whether it has its minimum; unlike in autoscale-core, a fleet of unknown size counts."""
        return self.is_excused or self.total is None or self.total >= self.min

    @property
    def satisfaction(self) -> float:
        """Its desired number as a fraction of its workers; the smaller, the more it can spare."""
        if not self.total:
            return math.inf
        return (self.total if self.desired is None else self.desired) / self.total


class GovernedChange(msgspec.Struct, frozen=True):
    change: int
    bound: Bound | None = None  # None: as recommended


def govern(
    change: int, *, total: int, least: int, most: int, others: Iterable[FleetNeed] = ()
) -> GovernedChange:
    if change > 0:
        return _up(change, total, least, most, all(other.is_served for other in others))
    if change < 0:
        return _down(-change, total, least)
    if total < least:
        return GovernedChange(least - total, Bound.BELOW_MINIMUM)
    if total > most:
        return GovernedChange(most - total, Bound.ABOVE_MAXIMUM)
    return GovernedChange(0)


def fleet_to_shrink(asking: FleetNeed, others: Iterable[FleetNeed]) -> FleetNeed | None:
    """The fleet that needs its workers least, if it needs them less than the one that asks."""
    able = [
        other
        for other in others
        if other.fleet != asking.fleet
        if other.total is not None and other.total > other.min
        if other.satisfaction < asking.satisfaction
    ]
    return min(able, key=lambda other: (other.satisfaction, other.fleet), default=None)


def _up(amount: int, total: int, least: int, most: int, are_others_served: bool) -> GovernedChange:
    if total > most:
        return GovernedChange(most - total, Bound.ABOVE_MAXIMUM)
    if are_others_served:
        allowed = min(most - total, amount)
        return GovernedChange(allowed, None if allowed == amount else Bound.AT_MAXIMUM)
    if total < least:
        return GovernedChange(least - total, Bound.BELOW_MINIMUM)
    return GovernedChange(max(least, total * 9 // 10) - total, Bound.OTHERS_FIRST)


def _down(amount: int, total: int, least: int) -> GovernedChange:
    if total < least:
        return GovernedChange(least - total, Bound.BELOW_MINIMUM)
    allowed = min(amount, total - least)
    return GovernedChange(-allowed, None if allowed == amount else Bound.AT_MINIMUM)
