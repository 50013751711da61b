"""History replayed under candidate settings, on Spark.

Each case has days of its own, so that one replay serves them all.
"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.lake.layout import ATTEMPTS, BACKLOG, HISTORY
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.limits import DAY, SECOND
from penstock.pipeline.files.listing import DayFiles
from penstock.pipeline.job import TablesOfDays
from penstock.pipeline.jobs.breaker_tuning import BREAKER_TUNING, JOB, breaker_tuning
from penstock.pipeline.runs import fingerprints
from penstock.pipeline.schemas import conform
from tests.pipeline.rows import DT, at, day_after, frame, pairs

# A server for 62 queues, of which 2 are busy: with 6 requests a minute it lives for 10 minutes.
SETTINGS = PipelineSettings(
    breaker_capacity=62, breaker_load=2, breaker_min_samples=4, breaker_half_open_ms=120_000
)
OUTAGE, CALM, ROUTES, OPERATOR, MIDNIGHT = (day_after(DT, 3 * n) for n in range(5))
Row = dict[str, Any]


class Calls:
    """Messages that ended, and attempts that failed."""

    def __init__(self) -> None:
        self.history: list[Row] = []
        self.attempts: list[Row] = []
        self._number = 0

    def done(self, finished_at: int, **more: Any) -> None:
        self._number += 1
        message = {"message_no": self._number, "route": "/a", "finished_at": finished_at}
        self.history.append({**message, **more})

    def dead(self, finished_at: int, **more: Any) -> None:
        """The last attempt of such a message is among the failed ones, too."""
        self.done(finished_at, outcome="dead", reason="attempts_exhausted", **more)
        self.failed(self._number, finished_at)

    def failed(self, message_no: int, ended_at: int, **more: Any) -> None:
        self.attempts.append({"message_no": message_no, "ended_at": ended_at, **more})

    def play(self, signs: str, day: str) -> None:
        """A call each 10 s: x fails, . succeeds."""
        for number, sign in enumerate(signs):
            instant = at("12:00:00", day) + 10 * number * SECOND
            (self.dead if sign == "x" else self.done)(instant)


def all_cases() -> Calls:
    calls = Calls()
    calls.play("......" + "x" * 18 + "......", OUTAGE)
    calls.play("......", CALM)
    noon = at("12:00:00", ROUTES)
    calls.done(noon, message_no=1_001)
    calls.done(noon, message_no=1_002, queue="b", route="/b")
    calls.failed(1_001, noon)
    calls.failed(1_077, noon, queue="b")  # has not ended yet
    calls.failed(1_001, noon, outcome="released")
    calls.failed(1_099, noon, queue="elsewhere")
    noon = at("12:00:00", OPERATOR)
    calls.done(noon)
    calls.done(noon, outcome="cancelled")
    calls.done(noon, outcome="dead", reason="I said so")
    calls.done(noon, route=None)
    for n in (0, 1, 2, 10_000):
        calls.dead(at("23:59:50", MIDNIGHT) + n)
    return calls


def tables(spark, calls, backlog=()):
    return {
        "history": frame(spark, HISTORY, *calls.history),
        "attempts": frame(spark, ATTEMPTS, *calls.attempts),
        "backlog": frame(spark, BACKLOG, *backlog),
    }


@pytest.fixture(scope="module")
def found(spark) -> list[Row]:
    replayed = conform(breaker_tuning(tables(spark, all_cases()), SETTINGS), BREAKER_TUNING)
    return [row.asDict() for row in replayed.collect()]


def pick(found: list[Row], names: str, **wanted: Any) -> list[tuple[Any, ...]]:
    """Columns of the rows with these values, in order."""
    rows = (row for row in found if wanted.items() <= row.items())
    return sorted(tuple(row[name] for name in names.split()) for row in rows)


def test_every_candidate_of_a_route_has_a_row_with_its_results(found):
    values = {
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
        "detection_max_ms": None,
        "held": 0,
        "failed": 18,
        "candidate": "300s-80%",
        "is_recommended": False,
        "dt": OUTAGE,
    }
    of_day = [row for row in found if row["dt"] == OUTAGE]
    own, of_all = ([row for row in of_day if row["route"] == route] for route in ("/a", "*"))
    assert len(own) == len(of_all) == 13
    for rows, route in ((own, "/a"), (of_all, "*")):
        [one] = [row for row in rows if row["candidate"] == "300s-80%"]
        assert one == values | {"route": route, "rank": one["rank"]}


def test_the_candidate_that_detects_the_outage_soonest_is_recommended(found):
    # Half of all have failed when as many failures have come as there were successes.
    names = "route error_threshold_percentage opens missed rank detection_ms"
    assert pick(found, names, dt=OUTAGE, is_recommended=True) == [
        ("*", 50, 1, 0, 1, 50_000),
        ("/a", 50, 1, 0, 1, 50_000),
    ]


def test_the_settings_in_force_are_among_the_candidates(found):
    names = "entries_max_age_ms max_queue_sample_count error_threshold_percentage rank"
    now = pick(found, names, dt=CALM, candidate="now", route="/a")
    assert now == [(DAY, 5_000, 90, 13)]


def test_without_failures_gateleens_values_are_recommended(found):
    names = "entries_max_age_ms error_threshold_percentage"
    assert pick(found, names, dt=CALM, is_recommended=True, route="*") == [(300_000, 80)]


def test_attempts_that_failed_count_for_the_route_of_their_message_or_of_their_queue(found):
    assert pick(found, "route calls failures", dt=ROUTES, candidate="now") == [
        ("*", 4, 2),
        ("/a", 2, 1),
        ("/b", 2, 1),
    ]


def test_messages_ended_by_an_operator_do_not_count_for_the_route(found):
    calls = pick(found, "route calls failures", dt=OPERATOR, candidate="now")
    assert calls == [("*", 1, 0), ("/a", 1, 0)]


def test_the_day_before_fills_the_window_and_is_not_counted(found):
    of_now = [row for row in found if row["candidate"] == "now" and row["dt"] >= MIDNIGHT]
    assert pick(of_now, "dt calls opens", route="/a") == [
        (MIDNIGHT, 3, 0),
        (day_after(MIDNIGHT), 1, 1),
    ]


def test_calls_that_come_to_python_in_many_batches_give_the_same_results(spark, found):
    most = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(most)
    spark.conf.set(most, "4")
    try:
        replayed = conform(breaker_tuning(tables(spark, all_cases()), SETTINGS), BREAKER_TUNING)
        rows = [row.asDict() for row in replayed.collect()]
    finally:
        spark.conf.set(most, before)

    assert sorted(rows, key=repr) == sorted(found, key=repr)


def test_only_the_requested_days_are_replayed(spark, found):
    of_days = TablesOfDays(tables(spark, all_cases()), [CALM])

    replayed = breaker_tuning(of_days, SETTINGS)

    assert {row["dt"] for row in found} > {CALM}
    assert {row["dt"] for row in replayed.select("dt").collect()} == {CALM}


def test_the_load_is_measured_unless_it_is_configured(spark, found):
    backlog = [
        {"at": at("12:00:00"), "queue": "a", "ready": 1},
        {"at": at("12:00:01"), "queue": "b", "leased": 1},
        {"at": at("12:01:00"), "queue": "b", "leased": 1},
        {"at": at("12:01:00"), "queue": "a"},
    ]
    calls = Calls()
    calls.done(at("12:00:00"))

    measured = breaker_tuning(tables(spark, calls, backlog), PipelineSettings(breaker_capacity=62))

    assert pairs(measured.where("candidate = 'now'"), "load") == [(1.5,), (1.5,)]
    assert {row["load"] for row in found} == {2.0}


def test_the_job_replays_a_day_and_records_it(driver):
    calls = Calls()
    calls.play("......", DT)
    driver.archive(HISTORY, *calls.history)

    assert ("breaker_tuning", DT) in driver.ran("breaker_tuning")
    assert driver.ran("breaker_tuning") == []
    assert driver.read("breaker_tuning").count() == 2 * 13


def test_late_attempts_and_other_settings_change_a_day():
    files: dict[str, Any] = {name: {DT: DayFiles(name)} for name in JOB.inputs}
    late = files | {"attempts": {DT: DayFiles("late")}}
    before = fingerprints(JOB, files, PipelineSettings())

    assert fingerprints(JOB, late, PipelineSettings()) != before
    assert fingerprints(JOB, files, SETTINGS) != before
