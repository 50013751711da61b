"""Settings of the jobs.  The CLI fills them from the settings of the section `pipeline`."""

from __future__ import annotations

import msgspec

from penstock.domain.lake.slo_targets import DEFAULT_TARGETS, Target, read_targets


class PipelineSettings(msgspec.Struct, frozen=True, kw_only=True):
    # quality: a day with more bad rows than this is not loaded
    max_bad_per_million: int = 0
    # slo
    targets: tuple[Target, ...] = read_targets(DEFAULT_TARGETS)
    # poison: counts per day that are suspicious
    poison_failures: int = 3  # failed attempts of one message
    poison_crashes: int = 2  # workers that crashed with one message
    poison_returns: int = 10  # times one message came back without failing or ending
    poison_ratio_percent: int = 20  # of the messages of a kind that fail
    flapping_changes: int = 6  # changes of one circuit
    # capacity
    cost_per_gib: float = 0.0
    storage_bytes: int | None = None
    # breaker_tuning; those from max_age to half_open are the settings in force
    breaker_capacity: int = 10_000  # active queues at which the server fails
    breaker_load: int | None = None  # active queues on average; None: measured
    breaker_max_age_ms: int = 86_400_000  # entriesMaxAgeMS
    breaker_max_samples: int = 5_000  # maxQueueSampleCount
    breaker_min_samples: int = 100  # minQueueSampleCount
    breaker_threshold_percent: int = 90  # errorThresholdPercentage
    breaker_half_open_ms: int = 120_000  # openToHalfOpen.interval
    breaker_outage_ms: int = 60_000  # the shortest period of failures that is an outage
    # scaling_backtest; the candidates are all combinations of goals, samples and most_up
    backtest_goals_s: tuple[int, ...] = (60, 300, 900)
    backtest_samples: tuple[int, ...] = (3, 10)
    backtest_most_up: tuple[int, ...] = (5, 20)
    backtest_min: int = 0  # workers of a fleet
    backtest_max: int = 50
    backtest_slots: int = 1  # messages that a worker handles at a time
    backtest_start_ms: int = 10_000  # how long a worker takes to start
    backtest_interval_ms: int = 10_000  # how often the autoscaler observes a fleet
    backtest_age_goal_ms: int = 60_000  # 99 of 100 messages should be claimed within this
