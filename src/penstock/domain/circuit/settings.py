"""The settings of the circuit breaker: gateleen's with its defaults, and our additions.

The additions are off or neutral by default, so that gateleen's behaviour stays exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from penstock.domain.described import about
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND, check_range

MAX_INT = 2**31 - 1  # gateleen's numbers have 32 bits

# The settings that single circuits can override are of these types.
CircuitCheck = Annotated[bool, about("Hold back the requests of open circuits.")]
StatisticsUpdate = Annotated[bool, about("Count the outcomes of requests.")]
ErrorThreshold = Annotated[int, about("The share of failures that opens a circuit, in percent.")]
EntriesMaxAge = Annotated[int, about("The age at which an outcome no longer counts.")]
MinSamples = Annotated[int, about("A circuit with fewer outcomes does not open.")]
MaxSamples = Annotated[int, about("How many successes, and how many failures, are kept.")]
MinOpen = Annotated[int, about("The minimum time that a circuit stays open.")]
OpenGrowth = Annotated[
    float, about("Growth factor of the time a circuit stays open, per failed probe.")
]
MaxOpen = Annotated[int, about("The longest time that open_growth keeps a circuit open.")]
SlowCall = Annotated[
    int | None, about("A response that takes this long counts as a failure; null: never.")
]
SingleProbe = Annotated[bool, about("Try one request at a time while a circuit is half-open.")]


class BreakerTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A periodic task, run once per cluster."""

    enabled: Annotated[bool, about("Run the task.")] = False
    interval_ms: Annotated[int, about("The time between two runs.")] = 2 * MINUTE


class BreakerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    circuit_check_enabled: CircuitCheck = False
    statistics_update_enabled: StatisticsUpdate = False
    error_threshold_percentage: ErrorThreshold = 90
    entries_max_age_ms: EntriesMaxAge = DAY
    min_queue_sample_count: MinSamples = 100
    max_queue_sample_count: MaxSamples = 5_000
    open_to_half_open: Annotated[
        BreakerTask, about("Half-opens circuits that have been open long enough.")
    ] = BreakerTask()
    unlock_queues: Annotated[
        BreakerTask, about("Releases queues of closed circuits, a few per run.")
    ] = BreakerTask(interval_ms=10 * SECOND)
    unlock_probes: Annotated[
        BreakerTask, about("Releases one queue of each half-open circuit as a probe.")
    ] = BreakerTask()
    # Additions to gateleen's settings.
    unlock_growth: Annotated[
        float, about("Growth factor of queues released per run of unlock_queues.")
    ] = 1.0
    max_unlocks: Annotated[
        int, about("The maximum number of queues that unlock_growth releases per run.")
    ] = 1_000
    min_open_ms: MinOpen = 0
    open_growth: OpenGrowth = 1.0
    max_open_ms: MaxOpen = HOUR
    slow_call_ms: SlowCall = None
    single_probe: SingleProbe = False


def change(changes: Mapping[str, Any], before: BreakerSettings) -> BreakerSettings:
    """Apply the given changes, also to single fields of tasks; raises InvalidRequest."""
    wanted = msgspec.to_builtins(before)
    for name, value in changes.items():
        is_part = isinstance(value, dict) and isinstance(wanted.get(name), dict)
        wanted[name] = wanted[name] | value if is_part else value
    try:
        return check(msgspec.convert(wanted, BreakerSettings))
    except msgspec.ValidationError as error:
        raise InvalidRequest(str(error)) from None


def check(settings: BreakerSettings) -> BreakerSettings:
    """Return the settings, or raise InvalidRequest for the first value out of range."""
    check_range("error_threshold_percentage", settings.error_threshold_percentage, 0, 100)
    for name in ("entries_max_age_ms", "min_queue_sample_count", "max_queue_sample_count"):
        check_range(name, getattr(settings, name), 0, MAX_INT)
    for name in ("open_to_half_open", "unlock_queues", "unlock_probes"):
        check_range(f"{name}.interval_ms", getattr(settings, name).interval_ms, 1, MAX_INT)
    for name in ("unlock_growth", "open_growth"):
        check_range(name, getattr(settings, name), 1, 100)
    check_range("max_unlocks", settings.max_unlocks, 1, 1_000_000)
    check_range("min_open_ms", settings.min_open_ms, 0, MAX_INT)
    check_range("max_open_ms", settings.max_open_ms, 1, MAX_INT)
    check_range("slow_call_ms", settings.slow_call_ms, 1, MAX_INT)
    return settings
