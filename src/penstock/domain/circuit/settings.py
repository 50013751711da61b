"""The settings of the circuit breaker: the seed's, with its defaults, and some beyond.

Those beyond the seed are off or neutral by default, so that the seed's behaviour stays exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND

MAX_INT = 2**31 - 1  # the seed's numbers have 32 bits


class BreakerTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that is done again and again, once per cluster."""

    enabled: bool = False
    interval_ms: int = 2 * MINUTE


class BreakerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    circuit_check_enabled: bool = False
    statistics_update_enabled: bool = False
    error_threshold_percentage: int = 90
    entries_max_age_ms: int = DAY
    min_queue_sample_count: int = 100
    max_queue_sample_count: int = 5_000
    open_to_half_open: BreakerTask = BreakerTask()
    unlock_queues: BreakerTask = BreakerTask(interval_ms=10 * SECOND)
    unlock_probes: BreakerTask = BreakerTask()  # of half-open circuits
    # Beyond the seed.
    unlock_growth: float = 1.0  # each tick lets so many times more queues go than the one before
    max_unlocks: int = 1_000  # … but not more than that
    min_open_ms: int = 0  # how long a circuit stays open at least, before a tick half-opens it
    open_growth: float = 1.0  # after each failed try it stays open so many times longer
    max_open_ms: int = HOUR  # … but not longer than that
    slow_call_ms: int | None = None  # an answer that takes longer counts as a failure
    single_probe: bool = False  # half-open, one request at a time is tried


def changed(changes: Mapping[str, Any], before: BreakerSettings) -> BreakerSettings:
    """Those that are named, also parts of tasks; others as they were.  Raises InvalidRequest."""
    wanted = msgspec.to_builtins(before)
    for name, value in changes.items():
        is_part = isinstance(value, dict) and isinstance(wanted.get(name), dict)
        wanted[name] = wanted[name] | value if is_part else value
    try:
        return check(msgspec.convert(wanted, BreakerSettings))
    except msgspec.ValidationError as error:
        raise InvalidRequest(str(error)) from None


def check(settings: BreakerSettings) -> BreakerSettings:
    """Return them, or raise InvalidRequest that names the first value out of range."""
    _within("error_threshold_percentage", settings.error_threshold_percentage, 0, 100)
    for name in ("entries_max_age_ms", "min_queue_sample_count", "max_queue_sample_count"):
        _within(name, getattr(settings, name), 0, MAX_INT)
    for name in ("open_to_half_open", "unlock_queues", "unlock_probes"):
        _within(f"{name}.interval_ms", getattr(settings, name).interval_ms, 1, MAX_INT)
    for name in ("unlock_growth", "open_growth"):
        _within(name, getattr(settings, name), 1, 100)
    _within("max_unlocks", settings.max_unlocks, 1, 1_000_000)
    _within("min_open_ms", settings.min_open_ms, 0, MAX_INT)
    _within("max_open_ms", settings.max_open_ms, 1, MAX_INT)
    if settings.slow_call_ms is not None:
        _within("slow_call_ms", settings.slow_call_ms, 1, MAX_INT)
    return settings


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise InvalidRequest(f"{name} must be from {low} to {high}, not {value}")
