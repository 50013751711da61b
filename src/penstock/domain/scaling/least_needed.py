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


class Memory(msgspec.Struct, frozen=True):
    """Peaks of the number needed, and the rate of a busy worker."""

    peaks: tuple[tuple[int, int], ...] = ()  # instants and numbers; each exceeds all later ones
    full_rate: float = 0.0  # of one worker while there was a backlog


def remember(memory: Memory, recommended: Recommendation, fleet: Fleet, *, now: int) -> Memory:
    if not recommended.change and recommended.inputs.needed is None:
        return memory  # no decision
    return Memory(
        _peaks(memory, recommended.wanted, fleet, now), _full_rate(memory, recommended.inputs)
    )


def least_needed(memory: Memory, recommended: Recommendation, fleet: Fleet, *, now: int) -> int:
    """The smallest number of workers to keep."""
    recent = [number for at, number in memory.peaks if now - at < fleet.steady_ms]
    if fleet.keep_up:
        recent.append(_kept_up(memory, recommended))
    return max(recent, default=0)


def _kept_up(memory: Memory, recommended: Recommendation) -> int:
    arriving = recommended.inputs.publish_rate
    if not arriving or not memory.full_rate:
        return 0
    return math.ceil(min(arriving / memory.full_rate, 1e6) - 1e-9)


def _peaks(memory: Memory, needed: int, fleet: Fleet, now: int) -> tuple[tuple[int, int], ...]:
    recent = (peak for peak in memory.peaks if now - peak[0] < fleet.steady_ms)
    return (*(peak for peak in recent if peak[1] > needed), (now, needed))


def _full_rate(memory: Memory, inputs: Inputs) -> float:
    if not inputs.rate_per_worker or not inputs.backlog:
        return memory.full_rate  # workers had to wait for work, so the rate is not meaningful
    return max(inputs.rate_per_worker, _FORGET * memory.full_rate)
