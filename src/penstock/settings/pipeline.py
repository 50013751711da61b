"""Settings of the lake, of the pipeline that reads it, and of the tables that it computes."""

from __future__ import annotations

from typing import Annotated

import msgspec

from penstock.domain.circuit.settings import MAX_INT
from penstock.domain.described import about, within
from penstock.domain.errors import InvalidRequest
from penstock.domain.lake.slo_targets import DEFAULT_TARGETS, read_targets
from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND

PIB = 1024**5
BILLION = 10**9


class ArchiveSettings(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[
        bool, about("write history to the lake; history is pruned only once it is written")
    ] = False
    folder: Annotated[
        str | None, about("folder of the lake, shared by all nodes; unset: lake in the data folder")
    ] = None
    every_ms: Annotated[int, within(SECOND, DAY, "interval between writes to the lake")] = (
        10 * MINUTE
    )
    bodies: Annotated[
        bool, about("also write the bodies of finished messages; a restore needs them")
    ] = True
    snapshot_every_ms: Annotated[
        int, within(0, 30 * DAY, "interval between snapshots; 0: only on request")
    ] = HOUR
    snapshots: Annotated[int, within(1, 100_000, "number of latest snapshots to keep")] = 48


class InsightsSettings(msgspec.Struct, frozen=True, kw_only=True):
    folder: Annotated[
        str | None, about("folder of the pipeline's tables; unset: derived in the lake's folder")
    ] = None


class SamplesSettings(msgspec.Struct, frozen=True, kw_only=True):
    retention_days: Annotated[
        int, within(4, 3660, "days for which the data of the graphs is kept")
    ] = 90


class PipelineSection(msgspec.Struct, frozen=True, kw_only=True):
    max_bad_per_million: Annotated[
        int, within(0, 1_000_000, "invalid rows per million above which a day is not loaded")
    ] = 0
    targets: Annotated[
        str,
        about(
            "service-level targets, separated by semicolons: "
            "QUEUE wait|service|total TIME PERCENT, or QUEUE success PERCENT"
        ),
    ] = DEFAULT_TARGETS
    poison_failures: Annotated[
        int, within(1, 1_000_000, "failures in a day that make a message poison")
    ] = 3
    poison_crashes: Annotated[
        int, within(1, 1_000_000, "worker crashes in a day that make a message poison")
    ] = 2
    poison_returns: Annotated[
        int,
        within(
            1,
            1_000_000,
            "returns to the queue without a failure, in a day, that make a message poison",
        ),
    ] = 10
    poison_ratio_percent: Annotated[
        int, within(0, 100, "percentage of failing messages that makes a kind poison")
    ] = 20
    flapping_changes: Annotated[
        int, within(1, 1_000_000, "state changes in a day above which a circuit flaps")
    ] = 6
    cost_per_gib: Annotated[str, about("cost of transferring 1 GiB, in any currency")] = "0"
    storage_bytes: (
        Annotated[
            int, within(1, PIB, "storage available for messages, to forecast when it is full")
        ]
        | None
    ) = None
    breaker_capacity: Annotated[
        int, within(1, BILLION, "number of active queues that overloads your server")
    ] = 10_000
    breaker_load: (
        Annotated[int, within(0, BILLION, "average number of active queues; unset: measured")]
        | None
    ) = None
    breaker_max_age_ms: Annotated[
        int, within(0, MAX_INT, "entriesMaxAgeMS in force, as the baseline of replays")
    ] = 86_400_000
    breaker_max_samples: Annotated[
        int, within(0, MAX_INT, "maxQueueSampleCount in force, as the baseline of replays")
    ] = 5_000
    breaker_min_samples: Annotated[
        int, within(0, MAX_INT, "minQueueSampleCount in force, as the baseline of replays")
    ] = 100
    breaker_threshold_percent: Annotated[
        int, within(0, 100, "errorThresholdPercentage in force, as the baseline of replays")
    ] = 90
    breaker_half_open_ms: Annotated[
        int, within(1, MAX_INT, "openToHalfOpen.interval in force, as the baseline of replays")
    ] = 120_000
    breaker_outage_ms: Annotated[
        int,
        within(0, MAX_INT, "how long at least half of the calls must fail to count as an outage"),
    ] = 60_000
    backtest_min: Annotated[
        int, within(0, 1_000_000, "minimum number of workers in a back-test")
    ] = 0
    backtest_max: Annotated[
        int, within(1, 1_000_000, "maximum number of workers in a back-test")
    ] = 50
    backtest_slots: Annotated[int, within(1, 10_000, "slots of each worker in a back-test")] = 1
    backtest_start_ms: Annotated[
        int, within(0, MAX_INT, "time that a worker takes to start in a back-test")
    ] = 10_000
    backtest_interval_ms: Annotated[
        int, within(1_000, MAX_INT, "interval between scaling decisions in a back-test")
    ] = 10_000
    backtest_age_goal_ms: Annotated[
        int,
        within(0, MAX_INT, "goal of a back-test: 99 of 100 messages are claimed within this time"),
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
