"""A day's arrivals replayed under candidate profiles, on Spark."""

from pyspark.testing import assertDataFrameEqual

from penstock.domain.lake.layout import HISTORY
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.scaling.recommendation import Profile
from penstock.pipeline.jobs.lifecycle import LIFECYCLE
from penstock.pipeline.jobs.scaling_backtest import (
    SCALING_BACKTEST,
    profiles,
    scaling_backtest,
)
from penstock.pipeline.schemas import conform
from tests.pipeline.rows import DT, NOON, at, computed, pairs

FEW = PipelineSettings(backtest_goals_s=(60,), backtest_samples=(1,), backtest_most_up=(5,))


def message(**more):
    return {
        "dt": DT,
        "queue": "mail",
        "sent_at": NOON,
        "service_ms": 1_000,
        "attempts": 1,
        "outcome": "done",
        **more,
    }


def played(spark, settings, *messages):
    found = scaling_backtest({"lifecycle": computed(spark, LIFECYCLE, *messages)}, settings)
    return conform(found, SCALING_BACKTEST)


def test_every_candidate_of_a_queue_has_a_row_with_its_results(spark):
    found = played(spark, FEW, message(sent_at=NOON + 1_000))

    # Looked at each 10 s: one more worker, 10 s later it is there.  It goes when what was needed
    # is five minutes ago.  Where both do the same, nothing has to be changed.
    common = {
        "queue": "mail",
        "messages": 1,
        "unfinished": 0,
        "age_p50_ms": 19_000,
        "age_p99_ms": 19_000,
        "age_max_ms": 19_000,
        "clear_max_ms": 19_000,
        "backlog_max": 1,
        "workers_max": 1,
        "changes": 2,
        "flaps": 1,
        "most_up": 5,
        "age_goal_ms": 60_000,
        "dt": DT,
    }
    expected = computed(
        spark,
        SCALING_BACKTEST,
        common
        | {"candidate": "now", "samples_needed": 10, "backlog_goal_s": 300}
        | {"worker_hours": 300 / 3600, "is_on_frontier": True, "is_recommended": True},
        common
        | {"candidate": "60s/1/+5", "samples_needed": 1, "backlog_goal_s": 60}
        | {"worker_hours": 300 / 3600, "is_on_frontier": True, "is_recommended": False},
    )
    assertDataFrameEqual(found, expected, rtol=1e-9)


def test_the_candidates_are_the_profile_in_force_and_all_combinations():
    found = dict(profiles(PipelineSettings()))

    assert found["now"] == Profile()
    assert found["60s/3/+20"] == Profile(samples_needed=3, backlog_goal_s=60, most_up=20)
    assert len(found) == 3 * 2 * 2  # one of the combinations is in force


def test_the_work_of_a_message_is_that_of_all_its_attempts_or_else_the_median(spark):
    one = PipelineSettings(
        backtest_goals_s=(), backtest_min=1, backtest_max=1, backtest_age_goal_ms=10_000
    )
    busy = [
        message(attempts=3),  # 3 s
        message(sent_at=NOON + 1, service_ms=None, outcome="dead", attempts=2),  # 2 s
        message(sent_at=NOON + 2),
        message(sent_at=NOON + 3, service_ms=None, outcome="cancelled", attempts=0),  # none
    ]

    found = played(spark, one, *busy)

    assert pairs(found, "messages", "age_max_ms", "worker_hours") == [(3, 4_998, 24.0)]


def test_absurd_numbers_do_not_overflow(spark):
    absurd = message(service_ms=10**12, attempts=2**31 - 1)

    found = played(spark, FEW, absurd, message(sent_at=NOON + 1)).where("candidate = 'now'")

    # The only worker is at work for ever.
    assert pairs(found, "messages", "unfinished") == [(2, 1)]


def test_messages_sent_before_the_day_arrive_when_it_begins(spark):
    one = PipelineSettings(backtest_goals_s=(), backtest_min=1, backtest_max=1)
    early = [message(sent_at=at("00:00:00") - 3_600_000)] * 2

    assert pairs(played(spark, one, *early), "age_max_ms") == [(1_000,)]


def test_the_frontier_has_the_unbeaten_candidates_and_the_cheapest_fast_one_is_recommended(spark):
    burst = [message(sent_at=NOON + n) for n in range(400)]
    wide = PipelineSettings(
        backtest_goals_s=(10, 600),
        backtest_samples=(1,),
        backtest_most_up=(50,),
        backtest_age_goal_ms=10**9,
    )

    found = played(spark, wide, *burst)

    rows = found.collect()
    for row in rows:
        beaten = any(
            o.worker_hours <= row.worker_hours
            and o.age_p99_ms <= row.age_p99_ms
            and (o.worker_hours, o.age_p99_ms) != (row.worker_hours, row.age_p99_ms)
            for o in rows
        )
        assert row.is_on_frontier != beaten, row
    [best] = [row for row in rows if row.is_recommended]
    assert best.worker_hours == min(row.worker_hours for row in rows)


def test_the_job_replays_each_queue_separately(driver):
    driver.archive(HISTORY, {"queue": "mail"}, {"queue": "bills"})

    driver.run("scaling_backtest", settings=FEW)

    assert pairs(driver.read("scaling_backtest"), "queue", "candidate", "messages") == [
        ("bills", "60s/1/+5", 1),
        ("bills", "now", 1),
        ("mail", "60s/1/+5", 1),
        ("mail", "now", 1),
    ]
