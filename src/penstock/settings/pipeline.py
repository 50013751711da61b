"""Settings of the lake, of the pipeline that reads it, and of the tables that it computes."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.domain.circuit.settings import MAX_INT
from penstock.domain.errors import InvalidRequest
from penstock.domain.lake.slo_targets import DEFAULT_TARGETS, read_targets
from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND

PIB = 1024**5
BILLION = 10**9


class ArchiveSettings(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[
        bool,
        Meta(description="write history to the lake; history is pruned only once it is written"),
    ] = False
    folder: Annotated[
        str | None,
        Meta(description="folder of the lake, shared by all nodes; unset: lake in the data folder"),
    ] = None
    every_ms: Annotated[
        int, Meta(ge=SECOND, le=DAY, description="interval between writes to the lake")
    ] = 10 * MINUTE
    bodies: Annotated[
        bool,
        Meta(description="also write the bodies of finished messages; a restore needs them"),
    ] = True
    snapshot_every_ms: Annotated[
        int,
        Meta(ge=0, le=30 * DAY, description="interval between snapshots; 0: only on request"),
    ] = HOUR
    snapshots: Annotated[
        int, Meta(ge=1, le=100_000, description="number of latest snapshots to keep")
    ] = 48


class InsightsSettings(msgspec.Struct, frozen=True, kw_only=True):
    folder: Annotated[
        str | None,
        Meta(description="folder of the pipeline's tables; unset: derived in the lake's folder"),
    ] = None


class SamplesSettings(msgspec.Struct, frozen=True, kw_only=True):
    retention_days: Annotated[
        int, Meta(ge=4, le=3660, description="days for which the data of the graphs is kept")
    ] = 90


class PipelineSection(msgspec.Struct, frozen=True, kw_only=True):
    max_bad_per_million: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="invalid rows per million above which a day is not loaded",
        ),
    ] = 0
    targets: Annotated[
        str,
        Meta(
            description="service-level targets, separated by semicolons: "
            "QUEUE wait|service|total TIME PERCENT, or QUEUE success PERCENT"
        ),
    ] = DEFAULT_TARGETS
    poison_failures: Annotated[
        int,
        Meta(ge=1, le=1_000_000, description="failures in a day that make a message poison"),
    ] = 3
    poison_crashes: Annotated[
        int,
        Meta(ge=1, le=1_000_000, description="worker crashes in a day that make a message poison"),
    ] = 2
    poison_returns: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="returns to the queue without a failure, in a day, that make a message "
            "poison",
        ),
    ] = 10
    poison_ratio_percent: Annotated[
        int,
        Meta(ge=0, le=100, description="percentage of failing messages that makes a kind poison"),
    ] = 20
    flapping_changes: Annotated[
        int,
        Meta(ge=1, le=1_000_000, description="state changes in a day above which a circuit flaps"),
    ] = 6
    cost_per_gib: Annotated[
        str, Meta(description="cost of transferring 1 GiB, in any currency")
    ] = "0"
    storage_bytes: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=PIB,
                description="storage available for messages, to forecast when it is full",
            ),
        ]
        | None
    ) = None
    breaker_capacity: Annotated[
        int,
        Meta(ge=1, le=BILLION, description="number of active queues that overloads your server"),
    ] = 10_000
    breaker_load: (
        Annotated[
            int,
            Meta(ge=0, le=BILLION, description="average number of active queues; unset: measured"),
        ]
        | None
    ) = None
    breaker_max_age_ms: Annotated[
        int,
        Meta(ge=0, le=MAX_INT, description="entriesMaxAgeMS in force, as the baseline of replays"),
    ] = 86_400_000
    breaker_max_samples: Annotated[
        int,
        Meta(
            ge=0, le=MAX_INT, description="maxQueueSampleCount in force, as the baseline of replays"
        ),
    ] = 5_000
    breaker_min_samples: Annotated[
        int,
        Meta(
            ge=0, le=MAX_INT, description="minQueueSampleCount in force, as the baseline of replays"
        ),
    ] = 100
    breaker_threshold_percent: Annotated[
        int,
        Meta(
            ge=0,
            le=100,
            description="errorThresholdPercentage in force, as the baseline of replays",
        ),
    ] = 90
    breaker_half_open_ms: Annotated[
        int,
        Meta(
            ge=1,
            le=MAX_INT,
            description="openToHalfOpen.interval in force, as the baseline of replays",
        ),
    ] = 120_000
    breaker_outage_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=MAX_INT,
            description="how long at least half of the calls must fail to count as an outage",
        ),
    ] = 60_000
    backtest_min: Annotated[
        int, Meta(ge=0, le=1_000_000, description="minimum number of workers in a back-test")
    ] = 0
    backtest_max: Annotated[
        int, Meta(ge=1, le=1_000_000, description="maximum number of workers in a back-test")
    ] = 50
    backtest_slots: Annotated[
        int, Meta(ge=1, le=10_000, description="slots of each worker in a back-test")
    ] = 1
    backtest_start_ms: Annotated[
        int, Meta(ge=0, le=MAX_INT, description="time that a worker takes to start in a back-test")
    ] = 10_000
    backtest_interval_ms: Annotated[
        int,
        Meta(ge=1_000, le=MAX_INT, description="interval between scaling decisions in a back-test"),
    ] = 10_000
    backtest_age_goal_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=MAX_INT,
            description="goal of a back-test: 99 of 100 messages are claimed within this time",
        ),
    ] = 60_000


def check_pipeline(pipeline: PipelineSection) -> None:
    """Raise InvalidRequest for an invalid value."""
    read_targets(pipeline.targets)
    try:
        is_cost = float(pipeline.cost_per_gib) >= 0
    except ValueError:
        is_cost = False
    if not is_cost:
        raise InvalidRequest(
            f"pipeline.cost_per_gib is {pipeline.cost_per_gib[:40]!r}; use a number such as 0.09"
        )
