"""Keeps a fleet from stopping a worker that it will soon need again.

The analyser considers only the backlog.  If a fraction of a worker were enough, it would stop a
worker at every other decision and start it again at the next.  So a fleet never shrinks below

    the largest number that was needed within the last `steady_ms`, and
    what it takes to keep up with arrivals, by the rate of a fully busy worker.

Neither ever starts a worker.
"""

from __future__ import annotations

import math

import msgspec

from penstock.domain.scaling.fleet import Fleet
from penstock.domain.scaling.recommendation import Inputs, Recommendation

_FORGET = 0.9  # of a worker's rate, per decision: work may become slower


class RecentPeaks(msgspec.Struct, frozen=True):
    """Peaks of the number needed, and the rate of a busy worker."""

    peaks: tuple[tuple[int, int], ...] = ()  # instants and numbers; each exceeds all later ones
    full_rate: float = 0.0  # of one worker while there was a backlog


def remember(
    recent: RecentPeaks, recommended: Recommendation, fleet: Fleet, *, now: int
) -> RecentPeaks:
    if not recommended.change and recommended.inputs.needed is None:
        return recent  # no decision
    return RecentPeaks(
        _peaks(recent, recommended.wanted, fleet, now), _full_rate(recent, recommended.inputs)
    )


def least_needed(
    recent: RecentPeaks, recommended: Recommendation, fleet: Fleet, *, now: int
) -> int:
    """The smallest number of workers to keep."""
    needed = [number for at, number in recent.peaks if now - at < fleet.steady_ms]
    if fleet.keep_up:
        needed.append(_count_to_keep_up(recent, recommended))
    return max(needed, default=0)


def _count_to_keep_up(recent: RecentPeaks, recommended: Recommendation) -> int:
    arriving = recommended.inputs.publish_rate
    if not arriving or not recent.full_rate:
        return 0
    return math.ceil(min(arriving / recent.full_rate, 1e6) - 1e-9)


def _peaks(recent: RecentPeaks, needed: int, fleet: Fleet, now: int) -> tuple[tuple[int, int], ...]:
    valid = (peak for peak in recent.peaks if now - peak[0] < fleet.steady_ms)
    return (*(peak for peak in valid if peak[1] > needed), (now, needed))


def _full_rate(recent: RecentPeaks, inputs: Inputs) -> float:
    if not inputs.rate_per_worker or not inputs.backlog:
        return recent.full_rate  # workers had to wait for work, so the rate is not meaningful
    return max(inputs.rate_per_worker, _FORGET * recent.full_rate)
