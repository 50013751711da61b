"""What the jobs can be told.  The CLI makes it from the settings of the section `pipeline`."""

from __future__ import annotations

import msgspec

from penstock.domain.lake.slo_targets import DEFAULT_TARGETS, Target, read_targets


class JobSettings(msgspec.Struct, frozen=True, kw_only=True):
    # quality: with more bad rows than that a day is not loaded
    max_bad_per_million: int = 0
    # slo
    targets: tuple[Target, ...] = read_targets(DEFAULT_TARGETS)
    # poison: so many in a day are suspicious
    poison_failures: int = 3  # failed attempts of one message
    poison_crashes: int = 2  # workers that died with one message
    poison_returns: int = 10  # times one message came back without failing or ending
    poison_ratio_percent: int = 20  # of the messages of a kind that fail
    flapping_changes: int = 6  # changes of one circuit
    # capacity
    cost_per_gib: float = 0.0
    storage_bytes: int | None = None
    # of breaker_tuning:
    breaker_capacity: int = 10_000  # active queues with which the server dies
    breaker_load: int | None = None  # active queues it has on average; None: measured
    breaker_max_age_ms: int = 86_400_000  # those in force: entriesMaxAgeMS
    breaker_max_samples: int = 5_000  # maxQueueSampleCount
    breaker_min_samples: int = 100  # minQueueSampleCount
    breaker_threshold_percent: int = 90  # errorThresholdPercentage
    breaker_half_open_ms: int = 120_000  # openToHalfOpen.interval
    breaker_outage_ms: int = 60_000  # so long most must have failed for it to be an outage
    # of scaling_backtest:
    backtest_goals_s: tuple[int, ...] = (60, 300, 900)  # candidates are all combinations of these
    backtest_samples: tuple[int, ...] = (3, 10)
    backtest_most_up: tuple[int, ...] = (5, 20)
    backtest_min: int = 0  # workers of a fleet
    backtest_max: int = 50
    backtest_slots: int = 1  # messages that a worker has at a time
    backtest_start_ms: int = 10_000  # how long a worker takes to start
    backtest_interval_ms: int = 10_000  # how often a fleet is looked at
    backtest_age_goal_ms: int = 60_000  # so fast 99 of 100 shall be claimed
