"""Formulas for the settings of a circuit breaker, from gateleen's documentation.

    example     a server that fails at 10,000 active queues has 2,000; a route with 600 requests a
                minute goes down
    survival    (10,000 - 2,000) / 600: 13 whole minutes, with 9,800 active queues by then
    age         about half of that time: 5 minutes
    samples     more than arrive within the age, with 15 % to spare: 4,000

The formulas do not give the failure threshold; replaying history does (pipeline/replays).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from penstock.domain.circuit.settings import MAX_INT, BreakerSettings, BreakerTask
from penstock.domain.insights.replays import NOW
from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND

SPARE = 1.15  # gateleen adds 15 % to what is expected
THRESHOLDS = (50, 70, 80, 90)  # percent
_AGES = (
    *(n * SECOND for n in (10, 30)),
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 4, 8, 12)),
    DAY,
)  # round values, as people set them


class Survival(msgspec.Struct, frozen=True):
    """How long a server survives while the requests of a broken route pile up."""

    ms: int
    minutes: int  # whole ones
    active: int  # active queues after those minutes


class Candidate(msgspec.Struct, frozen=True):
    name: str
    settings: BreakerSettings
    off_by: int  # steps between its age and the formula's; the most for the settings in force


def survival(*, capacity: int, load: float, per_minute: float) -> Survival | None:
    """None: no requests arrive, so the server survives."""
    if per_minute <= 0:
        return None
    room = max(0.0, capacity - load)
    minutes = int(room / per_minute)
    active = round(load + per_minute * minutes)
    return Survival(min(int(room / per_minute * MINUTE), MAX_INT * 1000), minutes, active)


def entries_max_age_ms(lives: Survival | None) -> int:
    """About half of the survival: the longest round age that is not longer."""
    return _AGES[_age_no(lives)]


def max_queue_sample_count(per_minute: float, age_ms: int, *, least: int) -> int:
    """A round number greater than the arrivals within the age."""
    expected = max(1.0, per_minute * SPARE * age_ms / MINUTE)
    digit: int = 10 ** int(math.log10(expected))
    return min(max(math.ceil(expected / digit) * digit, least), MAX_INT)


def candidates(
    now: BreakerSettings, lives: Survival | None, *, per_minute: float
) -> Iterator[Candidate]:
    """The settings in force, and ages near the formula's with each threshold."""
    watched = replace(now, circuit_check_enabled=True, statistics_update_enabled=True)
    ticking = replace(
        watched, open_to_half_open=BreakerTask(True, now.open_to_half_open.interval_ms)
    )
    yield Candidate(NOW, ticking, len(_AGES))
    middle = _age_no(lives)
    for age_no in range(max(0, middle - 1), min(len(_AGES), middle + 2)):
        age_ms = _AGES[age_no]
        most = max_queue_sample_count(per_minute, age_ms, least=now.min_queue_sample_count)
        for threshold in THRESHOLDS:
            settings = replace(
                ticking,
                entries_max_age_ms=age_ms,
                max_queue_sample_count=most,
                error_threshold_percentage=threshold,
            )
            name = f"{age_ms // SECOND}s-{threshold}%"
            yield Candidate(name, settings, abs(age_no - middle))


def _age_no(lives: Survival | None) -> int:
    half = DAY if lives is None else lives.ms // 2
    return max((n for n, age in enumerate(_AGES) if age <= half), default=0)
