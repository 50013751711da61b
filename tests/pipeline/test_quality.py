"""Checks that reject a bad day, report the problem, and quarantine bad rows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.testing import assertDataFrameEqual

from penstock.domain.lake.layout import ATTEMPTS, BACKLOG, FACTS, HISTORY
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.limits import HOUR
from penstock.pipeline.jobs.quality import QUALITY, QUARANTINE, quality, quarantine
from penstock.pipeline.schemas import conform
from tests.edge.process import ROOT
from tests.pipeline.rows import DT, NEXT_DT, NOON, at, computed, day_after, frame, pairs

pytestmark = pytest.mark.usefixtures("planned_once")

BALANCED = {"waiting": 1, "ready": 2, "leased": 3, "done_total": 4, "dead_total": 5}
BALANCED |= {"cancelled_total": 6, "sent_total": 21}
FINE: tuple[dict[str, Any], ...] = ({}, {})


def found(spark: Any, settings: PipelineSettings | None = None, **given: Any) -> DataFrame:
    return conform(quality(_tables(spark, **given), settings or PipelineSettings()), QUALITY)


def bad(
    spark: Any, settings: PipelineSettings | None = None, **given: Any
) -> list[tuple[Any, ...]]:
    """Table, check, rows and bad rows of what did not pass."""
    rows = found(spark, settings, **given).where("NOT is_passed")
    return list(pairs(rows, "table", "check", "rows", "bad"))


def aside(spark: Any, **given: Any) -> DataFrame:
    return conform(quarantine(_tables(spark, **given), PipelineSettings()), QUARANTINE)


def _tables(
    spark: Any,
    history: tuple[dict[str, Any], ...] = FINE,
    attempts: tuple[dict[str, Any], ...] = FINE,
    facts: tuple[dict[str, Any], ...] = FINE,
    backlog: tuple[dict[str, Any], ...] = (BALANCED,),
) -> dict[str, DataFrame]:
    return {
        "history": frame(spark, HISTORY, *history),
        "attempts": frame(spark, ATTEMPTS, *attempts),
        "facts": frame(spark, FACTS, *facts),
        "backlog": frame(spark, BACKLOG, *backlog),
    }


def test_a_good_day_passes_every_check_and_nothing_is_quarantined(spark):
    assert bad(spark) == []
    assert aside(spark).count() == 0


BAD_ROWS: dict[str, dict[str, Any]] = {
    "negative_wait": {"sent_at": NOON - 100},
    "negative_service": {"leased_at": NOON + 1},
    "negative_total": {"sent_at": NOON + 1, "first_leased_at": None, "leased_at": None},
    "claims_out_of_order": {"leased_at": NOON - 501},
    "unknown_outcome": {"outcome": "lost"},
    "missing_value": {"id": None},
    "negative_number": {"attempts": -1},
    "huge_number": {"size": 2**48 + 1},
    "wrong_day": {"finished_at": at("00:00:00", NEXT_DT), "dt": DT},
}


def test_one_bad_row_stops_its_day(spark):
    assert bad(spark, history=tuple(BAD_ROWS.values())) == sorted(
        ("history", check, len(BAD_ROWS), 1) for check in BAD_ROWS
    )


def test_a_bad_row_is_quarantined_as_a_whole_with_its_problems(spark):
    rows = aside(spark, history=(*BAD_ROWS.values(), {})).orderBy("number").collect()

    assert [(r["table"], r["number"], r["problems"]) for r in rows] == [
        ("history", number, check) for number, check in enumerate(BAD_ROWS, start=1)
    ]
    assert json.loads(rows[4]["row"])["outcome"] == "lost"


def test_a_balance_that_does_not_add_up_stops_the_day_whatever_is_tolerated(spark):
    off = {**BALANCED, "done_total": 5}
    lenient = PipelineSettings(max_bad_per_million=1_000_000)

    findings = bad(spark, lenient, backlog=(BALANCED, off))

    assert findings == [("backlog", "out_of_balance", 2, 1)]


def test_a_duplicate_number_stops_the_day_whatever_is_tolerated_and_both_rows_are_quarantined(
    spark,
):
    twice = {"history_no": 40_000}
    lenient = PipelineSettings(max_bad_per_million=1_000_000)

    history: tuple[dict[str, Any], ...] = (twice, {}, twice, twice)

    assert bad(spark, lenient, history=history) == [("history", "doubled", 4, 2)]
    assert (
        pairs(aside(spark, history=history), "table", "number", "problems")
        == [("history", 40_000, "doubled")] * 3
    )


def test_the_same_number_on_two_days_is_not_a_duplicate(spark):
    next_day = {"finished_at": at("00:00:01", NEXT_DT), "history_no": 1}

    assert bad(spark, history=({}, next_day)) == []


def test_a_message_can_die_twice_but_be_done_only_once(spark):
    dead, done = {"message_no": 9, "outcome": "dead"}, {"message_no": 9}

    assert bad(spark, history=(dead, dead, done)) == []
    assert bad(spark, history=(dead, done, done)) == [("history", "done_twice", 2, 1)]


def test_a_share_of_bad_rows_can_be_tolerated_and_is_still_reported(spark):
    rows: tuple[dict[str, Any], ...] = ({"outcome": "lost"}, {}, {}, {})

    findings = found(spark, PipelineSettings(max_bad_per_million=250_000), history=rows)

    assert findings.where("NOT is_passed").count() == 0
    assert pairs(findings.where("bad > 0"), "check", "bad") == [("unknown_outcome", 1)]
    assert bad(spark, PipelineSettings(max_bad_per_million=249_999), history=rows)


def set_back(clock: str, *, ahead_until: int, dt: str = DT) -> dict[str, Any]:
    data = json.dumps({"from": ahead_until, "to": at(clock, dt)})
    return {"kind": "clock_set_back", "subject": "store", "at": at(clock, dt), "data": data}


def test_rows_from_before_the_clock_was_set_back_are_quarantined_and_do_not_stop_the_day(spark):
    ahead = NOON + 3 * HOUR
    history: tuple[dict[str, Any], ...] = (
        {"sent_at": ahead, "first_leased_at": NOON - 1, "leased_at": NOON - 1},
        {},
    )
    attempts = ({"leased_at": ahead - 1},)
    facts = (set_back("11:00:00", ahead_until=ahead),)

    findings = found(spark, history=history, attempts=attempts, facts=facts)

    assert findings.where("NOT is_passed").count() == 0
    assert pairs(findings.where("bad > 0"), "table", "check", "bad") == [
        ("attempts", "negative_service", 1),
        ("history", "negative_total", 1),
        ("history", "negative_wait", 1),
    ]
    assert aside(spark, history=history, attempts=attempts).count() == 2


def test_a_clock_that_was_set_back_explains_two_days_and_only_times_that_it_showed(spark):
    ahead = at("15:00:00", day_after(DT, 3))
    facts = (set_back("11:00:00", ahead_until=ahead),)
    never_leased = {"first_leased_at": None, "leased_at": None}

    def backwards(days: int, sent_at: int) -> dict[str, Any]:
        return never_leased | {
            "finished_at": at("12:00:00", day_after(DT, days)),
            "sent_at": sent_at,
        }

    assert bad(spark, history=(backwards(1, ahead),), facts=facts) == []
    for late in (backwards(1, ahead + 1), backwards(2, ahead)):
        assert bad(spark, history=(late,), facts=facts) == [("history", "negative_total", 1, 1)]


def test_an_attempt_that_ended_before_it_began_stops_the_day(spark):
    findings = bad(spark, attempts=({"leased_at": NOON + 1},))

    assert findings == [("attempts", "negative_service", 1, 1)]


FIRST = {**BALANCED, "at": at("10:00:00")}
LAST = {**BALANCED, "at": at("13:00:00"), "done_total": 6, "sent_total": 23}


class TestCounted:
    """The broker's counters beside the rows of history between two of its samples."""

    def test_as_many_endings_as_were_counted_pass(self, spark):
        assert bad(spark, history=({}, {}), backlog=(FIRST, LAST)) == []

    def test_a_missing_row_is_reported_and_does_not_stop_the_day(self, spark):
        findings = found(spark, history=({},), backlog=(FIRST, LAST))

        assertDataFrameEqual(
            findings.where("NOT is_passed"),
            computed(
                spark,
                QUALITY,
                {
                    "table": "history",
                    "check": "counted",
                    "rows": 2,
                    "bad": 1,
                    "is_passed": False,
                    "is_stopping": False,
                    "dt": DT,
                },
            ),
        )

    def test_an_ending_at_the_instant_of_a_sample_may_be_on_either_side_of_it(self, spark):
        at_the_edge = {"finished_at": at("13:00:00") + 3, "sent_at": at("12:59:00")}
        at_the_edge |= {"first_leased_at": at("12:59:30"), "leased_at": at("12:59:30")}

        assert bad(spark, history=({}, at_the_edge), backlog=(FIRST, LAST)) == []


def test_a_bad_day_is_not_loaded_and_a_good_one_is(driver):
    driver.archive(HISTORY, {}, {"sent_at": NOON}, {"finished_at": at("09:00:00", NEXT_DT)})

    runs = driver.run("lifecycle")

    assert [(run.job, run.dt, run.status) for run in runs] == [
        ("quality", DT, "refused"),
        ("quality", NEXT_DT, "done"),
        ("lifecycle", NEXT_DT, "done"),
    ]
    assert runs[0].note == "history: negative_wait (1 of 2)"
    assert pairs(driver.read("lifecycle"), "dt") == [(NEXT_DT,)]
    assert driver.read("quarantine").count() == 1
    assert driver.run("lifecycle") == []


def test_results_stay_when_bad_rows_come_and_are_replaced_when_they_are_repaired(driver):
    driver.archive(HISTORY, {})
    driver.run("lifecycle")
    driver.archive(HISTORY, {"outcome": "lost"})
    driver.run("lifecycle")

    assert driver.read("lifecycle").count() == 1

    [*_, newest] = sorted((driver.folder / "history" / f"dt={DT}").iterdir())
    newest.unlink()
    driver.archive(HISTORY, {})
    runs = driver.run("lifecycle")

    assert [(run.job, run.status) for run in runs] == [("quality", "done"), ("lifecycle", "done")]
    assert driver.read("lifecycle").count() == 2
    assert driver.read("quarantine").count() == 0


def test_tolerated_bad_rows_are_left_out_of_everything_else(driver):
    driver.archive(HISTORY, {"id": "good"}, {"id": "bad", "sent_at": NOON})

    driver.run("lifecycle", settings=PipelineSettings(max_bad_per_million=500_000))

    assert pairs(driver.read("lifecycle"), "id") == [("good",)]
    assert pairs(driver.read("quarantine"), "problems") == [("negative_wait",)]


def test_the_page_names_every_check(spark):
    page = (ROOT / "docs/pipeline.md").read_text(encoding="utf-8")
    rows = found(spark).select("check").distinct().collect()

    assert [row.check for row in rows if f"`{row.check}`" not in page] == []


def test_impossible_counters_fail_the_balance_instead_of_overflowing(spark):
    most = 2**63 - 1
    rows = ({"ready": most, "done_total": most, "sent_total": most}, BALANCED | {"at": NOON + 1})

    assert sorted(one for one in bad(spark, backlog=rows) if one[0] == "backlog") == [
        ("backlog", "huge_number", 2, 1),
        ("backlog", "out_of_balance", 2, 1),
    ]


def test_numbers_of_which_sums_would_overflow_refuse_their_day_and_end_no_run(driver):
    huge, of_next_day = 2**62, at("12:00:00", NEXT_DT)
    balanced = {"ready": huge, "sent_total": huge}
    driver.archive(HISTORY, {"size": huge}, {"size": huge}, {"finished_at": of_next_day})
    driver.archive(BACKLOG, balanced | {"queue_no": 1}, balanced | {"queue_no": 2})

    runs = driver.run("capacity")

    assert [(run.job, run.dt, run.note) for run in runs if run.status == "refused"] == [
        ("quality", DT, "backlog: huge_number (2 of 2), history: huge_number (2 of 2)")
    ]
    assert pairs(driver.read("capacity").where("queue = '*'"), "dt", "messages") == [(NEXT_DT, 1)]


def test_a_tolerated_sample_without_values_is_not_loaded(driver):
    driver.archive(HISTORY, {"route": "/shop"})
    driver.archive(BACKLOG, BALANCED | {"ready": 2})
    driver.archive(BACKLOG, {"leased": -1, "ready": 8, "sent_total": 7})

    runs = driver.run(
        "capacity", "breaker_tuning", settings=PipelineSettings(max_bad_per_million=500_000)
    )

    assert {run.status for run in runs} == {"done"}, [run.note for run in runs]
    of_queue = driver.read("capacity").where("queue = 'mail'")
    assert pairs(of_queue, "backlog_peak", "backlog_end") == [(2, 6)]
