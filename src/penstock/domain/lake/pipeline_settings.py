"""Settings of the pipeline's jobs: the section `pipeline` of the settings."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from penstock.domain.circuit.settings import MAX_INT
from penstock.domain.described import setting
from penstock.domain.lake.slo_targets import DEFAULT_TARGETS, Target, read_targets

PIB = 1024**5
BILLION = 10**9
TENANTS = {"group": "group_key", "tag1": "tag1", "tag2": "tag2"}  # columns, by setting


@dataclass(frozen=True, kw_only=True)
class PipelineSettings:
    format: Literal["parquet", "delta"] = setting(
        "parquet", "format of the computed tables: plain Parquet, or Delta Lake on top of it"
    )
    max_bad_per_million: int = setting(
        0, "invalid rows per million above which a day is not loaded", 0, 1_000_000
    )
    targets: str = setting(
        DEFAULT_TARGETS,
        "service-level targets, separated by semicolons: "
        "QUEUE wait|service|total TIME PERCENT, or QUEUE success PERCENT",
    )
    poison_failures: int = setting(3, "failures in a day that make a message poison", 1, 1_000_000)
    poison_crashes: int = setting(
        2, "worker crashes in a day that make a message poison", 1, 1_000_000
    )
    poison_returns: int = setting(
        10,
        "returns to the queue without a failure, in a day, that make a message poison",
        1,
        1_000_000,
    )
    poison_ratio_percent: int = setting(
        20, "percentage of failing messages that makes a kind poison", 0, 100
    )
    flapping_changes: int = setting(
        6, "state changes in a day above which a circuit flaps", 1, 1_000_000
    )
    tenant: str = setting("group", "label of a message that names its tenant: group, tag1 or tag2")
    cost_per_gib: str = setting("0", "cost of transferring 1 GiB, in any currency")
    storage_bytes: int | None = setting(
        None, "storage available for messages, to forecast when it is full", 1, PIB
    )
    breaker_capacity: int = setting(
        10_000, "number of active queues that overloads your server", 1, BILLION
    )
    breaker_load: int | None = setting(
        None, "average number of active queues; unset: measured", 0, BILLION
    )
    breaker_max_age_ms: int = setting(
        86_400_000, "entries_max_age_ms in force, as the baseline of replays", 0, MAX_INT
    )
    breaker_max_samples: int = setting(
        5_000, "max_queue_sample_count in force, as the baseline of replays", 0, MAX_INT
    )
    breaker_min_samples: int = setting(
        100, "min_queue_sample_count in force, as the baseline of replays", 0, MAX_INT
    )
    breaker_threshold_percent: int = setting(
        90, "error_threshold_percentage in force, as the baseline of replays", 0, 100
    )
    breaker_half_open_ms: int = setting(
        120_000, "open_to_half_open.interval_ms in force, as the baseline of replays", 1, MAX_INT
    )
    breaker_outage_ms: int = setting(
        60_000, "how long at least half of the calls must fail to count as an outage", 0, MAX_INT
    )
    # The candidates of a back-test are all combinations of these; they are not configurable.
    backtest_goals_s: tuple[int, ...] = (60, 300, 900)
    backtest_samples: tuple[int, ...] = (3, 10)
    backtest_most_up: tuple[int, ...] = (5, 20)
    backtest_profile_goal_s: int = setting(
        300, "backlog_goal_s in force, as the baseline of back-tests", 1, BILLION
    )
    backtest_profile_samples: int = setting(
        10, "samples_needed in force, as the baseline of back-tests", 1, 10_000
    )
    backtest_profile_most_up: int = setting(
        5, "most_up in force, as the baseline of back-tests", 1, 1_000_000
    )
    backtest_min: int = setting(0, "minimum number of workers in a back-test", 0, 1_000_000)
    backtest_max: int = setting(50, "maximum number of workers in a back-test", 1, 1_000_000)
    backtest_slots: int = setting(1, "slots of each worker in a back-test", 1, 10_000)
    backtest_start_ms: int = setting(
        10_000, "time that a worker takes to start in a back-test", 0, MAX_INT
    )
    backtest_interval_ms: int = setting(
        10_000, "interval between scaling decisions in a back-test", 1_000, MAX_INT
    )
    backtest_age_goal_ms: int = setting(
        60_000, "goal of a back-test: 99 of 100 messages are claimed within this time", 0, MAX_INT
    )

    @property
    def service_levels(self) -> tuple[Target, ...]:
        return read_targets(self.targets)

    @property
    def tenant_column(self) -> str:
        """The column of history that names the tenant."""
        return TENANTS[self.tenant]

    @property
    def price_per_gib(self) -> float:
        return float(self.cost_per_gib)


def settings_named(prefix: str) -> tuple[str, ...]:
    """The settings whose names begin like this, in the order of their declaration."""
    return tuple(field.name for field in fields(PipelineSettings) if field.name.startswith(prefix))
