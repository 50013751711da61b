"""What can be set about the pipeline."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.domain.circuit.settings import MAX_INT
from penstock.domain.errors import InvalidRequest
from penstock.domain.lake.slo_targets import DEFAULT_TARGETS, read_targets

PIB = 1024**5
MILLIARD = 10**9


class Pipeline(msgspec.Struct, frozen=True, kw_only=True):
    max_bad_per_million: Annotated[
        int, Meta(ge=0, le=1_000_000, description="with more bad rows a day is not loaded")
    ] = 0
    targets: Annotated[
        str,
        Meta(description="targets of service: QUEUE wait|service|total TIME PERCENT; or success"),
    ] = DEFAULT_TARGETS
    poison_failures: Annotated[
        int, Meta(ge=1, le=1_000_000, description="failures that make a message poison")
    ] = 3
    poison_crashes: Annotated[
        int, Meta(ge=1, le=1_000_000, description="dead workers that make it poison")
    ] = 2
    poison_returns: Annotated[
        int, Meta(ge=1, le=1_000_000, description="returns without a failure that make it poison")
    ] = 10
    poison_ratio_percent: Annotated[
        int, Meta(ge=0, le=100, description="failing messages that make a kind poison")
    ] = 20
    flapping_changes: Annotated[
        int, Meta(ge=1, le=1_000_000, description="changes a day of a circuit that flaps")
    ] = 6
    cost_per_gib: Annotated[str, Meta(description="what moving 1 GiB costs, in any currency")] = "0"
    storage_bytes: (
        Annotated[int, Meta(ge=1, le=PIB, description="room for messages; tells how long it lasts")]
        | None
    ) = None
    breaker_capacity: Annotated[
        int, Meta(ge=1, le=MILLIARD, description="active queues with which a server dies")
    ] = 10_000
    breaker_load: (
        Annotated[
            int, Meta(ge=0, le=MILLIARD, description="active queues it has on average; or measured")
        ]
        | None
    ) = None
    breaker_max_age_ms: Annotated[
        int, Meta(ge=0, le=MAX_INT, description="entriesMaxAgeMS in force, to compare with")
    ] = 86_400_000
    breaker_max_samples: Annotated[
        int, Meta(ge=0, le=MAX_INT, description="maxQueueSampleCount in force")
    ] = 5_000
    breaker_min_samples: Annotated[
        int, Meta(ge=0, le=MAX_INT, description="minQueueSampleCount in force")
    ] = 100
    breaker_threshold_percent: Annotated[
        int, Meta(ge=0, le=100, description="errorThresholdPercentage in force")
    ] = 90
    breaker_half_open_ms: Annotated[
        int, Meta(ge=1, le=MAX_INT, description="openToHalfOpen.interval in force")
    ] = 120_000
    breaker_outage_ms: Annotated[
        int, Meta(ge=0, le=MAX_INT, description="so long most must fail for an outage")
    ] = 60_000
    backtest_min: Annotated[
        int, Meta(ge=0, le=1_000_000, description="workers of a fleet that is replayed, at least")
    ] = 0
    backtest_max: Annotated[int, Meta(ge=1, le=1_000_000, description="and at most")] = 50
    backtest_slots: Annotated[
        int, Meta(ge=1, le=10_000, description="messages that one of its workers has at a time")
    ] = 1
    backtest_start_ms: Annotated[
        int, Meta(ge=0, le=MAX_INT, description="how long a worker takes to start")
    ] = 10_000
    backtest_interval_ms: Annotated[
        int, Meta(ge=1_000, le=MAX_INT, description="how often the fleet is looked at")
    ] = 10_000
    backtest_age_goal_ms: Annotated[
        int, Meta(ge=0, le=MAX_INT, description="so soon 99 of 100 shall be claimed")
    ] = 60_000


def check_pipeline(pipeline: Pipeline) -> None:
    read_targets(pipeline.targets)
    try:
        is_cost = float(pipeline.cost_per_gib) >= 0
    except ValueError:
        is_cost = False
    if not is_cost:
        raise InvalidRequest(
            f"pipeline.cost_per_gib is a number such as 0.09, not {pipeline.cost_per_gib[:40]!r}"
        )
