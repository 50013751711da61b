"""History replayed under candidate settings, on Spark."""

from pyspark.testing import assertDataFrameEqual

from penstock.domain.lake.layout import ATTEMPTS, BACKLOG, HISTORY
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.limits import DAY, SECOND
from penstock.pipeline.jobs.breaker_tuning import BREAKER_TUNING, breaker_tuning
from penstock.pipeline.schemas import conform
from tests.pipeline.rows import DT, NEXT_DT, NOON, at, computed, frame, pairs

# A server for 62 queues, of which 2 are busy: with 6 requests a minute it lives for 10 minutes.
SETTINGS = PipelineSettings(
    breaker_capacity=62, breaker_load=2, breaker_min_samples=4, breaker_half_open_ms=120_000
)


def done(second, **more):
    return {"route": "/a", "finished_at": NOON + second * SECOND, **more}


def dead(second, **more):
    return done(second, outcome="dead", reason="attempts_exhausted", **more)


def history_of(signs, *, start=0, **more):
    """A call each 10 s: x fails, . succeeds."""
    return [(dead if sign == "x" else done)(start + 10 * n, **more) for n, sign in enumerate(signs)]


def tables(spark, history, attempts=(), backlog=()):
    return {
        "history": frame(spark, HISTORY, *history),
        "attempts": frame(spark, ATTEMPTS, *attempts),
        "backlog": frame(spark, BACKLOG, *backlog),
    }


def test_every_candidate_of_a_route_has_a_row_with_its_results(spark):
    outage = history_of("......" + "x" * 18 + "......")

    found = conform(breaker_tuning(tables(spark, outage), SETTINGS), BREAKER_TUNING)

    said = {
        "entries_max_age_ms": 300_000,
        "max_queue_sample_count": 40,
        "error_threshold_percentage": 80,
        "min_queue_sample_count": 4,
        "off_by": 0,
        "per_minute": 6.0,
        "load": 2.0,
        "survival_ms": 600_000,
        "dies_with": 62,
        "calls": 30,
        "failures": 18,
        "outages": 1,
        "missed": 1,
        "unsafe": 0,
        "opens": 0,
        "false_opens": 0,
        "reopens": 0,
        "open_ms": 0,
        "false_open_ms": 0,
        "detection_ms": 0,
        "held": 0,
        "failed": 18,
        "candidate": "300s-80%",
        "is_recommended": False,
        "dt": DT,
    }
    one = found.where("candidate = '300s-80%'").drop("rank")
    expected = computed(spark, BREAKER_TUNING, said | {"route": "/a"}, said | {"route": "*"}).drop(
        "rank"
    )
    assertDataFrameEqual(one, expected)


def test_the_candidate_that_detects_the_outage_soonest_is_recommended(spark):
    outage = history_of("......" + "x" * 18 + "......")

    found = breaker_tuning(tables(spark, outage), SETTINGS)

    # Half of all have failed when as many failures have come as there were successes.
    best = found.where("is_recommended").select(
        "route", "error_threshold_percentage", "opens", "missed", "detection_ms", "rank"
    )
    assert pairs(best, "route", "error_threshold_percentage", "opens", "missed", "rank") == [
        ("*", 50, 1, 0, 1),
        ("/a", 50, 1, 0, 1),
    ]
    assert pairs(best, "detection_ms") == [(50_000,), (50_000,)]


def test_the_settings_in_force_are_among_the_candidates(spark):
    found = breaker_tuning(tables(spark, history_of("......")), SETTINGS)

    now = found.where("candidate = 'now' AND route = '/a'")
    assert pairs(now, "entries_max_age_ms", "max_queue_sample_count") == [(DAY, 5_000)]
    assert pairs(now, "error_threshold_percentage", "rank") == [(90, 13)]


def test_without_failures_gateleens_values_are_recommended(spark):
    found = breaker_tuning(tables(spark, history_of("......")), SETTINGS)

    best = found.where("is_recommended AND route = '*'")
    assert pairs(best, "entries_max_age_ms", "error_threshold_percentage") == [(300_000, 80)]


def test_attempts_that_failed_count_for_the_route_of_their_message_or_of_their_queue(spark):
    history = [done(0, message_no=1), done(0, message_no=2, queue="b", route="/b")]
    attempts = [
        {"message_no": 1, "ended_at": NOON},
        {"message_no": 77, "queue": "b", "ended_at": NOON},  # has not ended yet
        {"message_no": 1, "outcome": "released", "ended_at": NOON},
        {"message_no": 99, "queue": "elsewhere", "ended_at": NOON},
    ]

    found = breaker_tuning(tables(spark, history, attempts), SETTINGS)

    assert pairs(found.where("candidate = 'now'"), "route", "calls", "failures") == [
        ("*", 4, 2),
        ("/a", 2, 1),
        ("/b", 2, 1),
    ]


def test_messages_ended_by_an_operator_do_not_count_for_the_route(spark):
    history = [
        done(0),
        done(1, outcome="cancelled"),
        done(2, outcome="dead", reason="I said so"),
        done(3, route=None),
    ]

    found = breaker_tuning(tables(spark, history), SETTINGS)

    assert pairs(found.where("candidate = 'now'"), "route", "calls") == [("*", 1), ("/a", 1)]


def test_the_load_is_measured_unless_it_is_configured(spark):
    backlog = [
        {"at": at("12:00:00"), "queue": "a", "ready": 1},
        {"at": at("12:00:01"), "queue": "b", "leased": 1},
        {"at": at("12:01:00"), "queue": "b", "leased": 1},
        {"at": at("12:01:00"), "queue": "a"},
    ]
    given = tables(spark, [done(0)], backlog=backlog)

    measured = breaker_tuning(given, PipelineSettings(breaker_capacity=62))
    said = breaker_tuning(given, SETTINGS)

    assert pairs(measured.where("candidate = 'now'"), "load") == [(1.5,), (1.5,)]
    assert pairs(said.where("candidate = 'now'"), "load") == [(2.0,), (2.0,)]


def test_the_day_before_fills_the_window_and_is_not_counted(spark):
    late = at("23:59:50")
    history = [
        *({"route": "/a", "outcome": "dead", "reason": "timed_out", "finished_at": late + n}
          for n in range(3)),
        {"route": "/a", "outcome": "dead", "reason": "timed_out", "finished_at": late + 10_000},
    ]  # fmt: skip

    found = breaker_tuning(tables(spark, history), SETTINGS).where("route = '/a'")

    of_now = found.where("candidate = 'now'")
    assert pairs(of_now, "dt", "calls", "opens") == [(DT, 3, 0), (NEXT_DT, 1, 1)]


def test_the_job_replays_what_has_changed_and_no_more(bench):
    bench.archive(HISTORY, *history_of("......"))

    assert ("breaker_tuning", DT) in bench.ran("breaker_tuning")
    assert bench.ran("breaker_tuning") == []
    assert bench.read("breaker_tuning").count() == 2 * 13

    bench.archive(ATTEMPTS, {"message_no": 1, "ended_at": NOON})
    assert ("breaker_tuning", DT) in bench.ran("breaker_tuning")
    assert bench.ran("breaker_tuning", settings=SETTINGS) == [("breaker_tuning", DT)]
