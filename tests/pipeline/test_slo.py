"""Service-level targets: met or missed, burn, offenders, and the remaining budget."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.testing import assertDataFrameEqual

from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.pipeline.jobs.lifecycle import LIFECYCLE
from penstock.pipeline.jobs.slo import OFFENDERS, SLO, offenders, slo
from penstock.pipeline.jobs.slo_budget import BUDGET, budget
from penstock.pipeline.schemas import conform
from tests.pipeline.rows import DT, at, computed, day_after, pairs

FAST = {
    "queue": "mail",
    "outcome": "done",
    "finished_at": at("12:30:00"),
    "wait_ms": 100,
    "service_ms": 40,
    "total_ms": 140,
    "dt": DT,
}
SLOW = {**FAST, "wait_ms": 5_001, "total_ms": 6_000}


def tables(spark: Any, *ended: dict[str, Any]) -> dict[str, DataFrame]:
    return {"lifecycle": computed(spark, LIFECYCLE, *ended)}


def with_targets(targets: str) -> PipelineSettings:
    return PipelineSettings(targets=targets)


def test_a_day_has_its_misses_the_burn_and_the_worst_hour(spark):
    ended = [FAST] * 17 + [SLOW, {**SLOW, "finished_at": at("09:59:59")}]
    ended += [{**SLOW, "finished_at": at("12:00:00")}]

    found = conform(slo(tables(spark, *ended), with_targets("mail wait 5s 90")), SLO)

    assertDataFrameEqual(
        found,
        computed(
            spark,
            SLO,
            {
                "queue": "mail",
                "objective": "wait",
                "limit_ms": 5_000,
                "percent": 90.0,
                "messages": 20,
                "bad": 3,
                "good_percent": 85.0,
                "burn": 1.5,
                "worst_hour_at": at("12:00:00"),
                "worst_hour_burn": 20 / 19,
                "dt": DT,
            },
        ),
    )


def test_each_objective_counts_only_the_messages_it_applies_to(spark):
    dead = {**FAST, "outcome": "dead", "service_ms": None}
    never_claimed = {**FAST, "outcome": "cancelled", "wait_ms": None, "service_ms": None}
    ended = [FAST, SLOW, dead, never_claimed]
    targets = with_targets("* wait 5s 99; * service 10ms 99; * total 1s 99; * success 99")

    found = slo(tables(spark, *ended), targets)

    assert pairs(found, "objective", "messages", "bad") == [
        ("service", 2, 2),
        ("success", 3, 1),
        ("total", 2, 1),
        ("wait", 3, 1),
    ]


def test_the_first_matching_target_counts_and_a_queue_without_one_has_no_row(spark):
    ended = [{**SLOW, "queue": name} for name in ("mail", "mail-eu", "other")]

    found = slo(tables(spark, *ended), with_targets("mail wait 1m 99; mail* wait 1s 95"))

    assert pairs(found, "queue", "limit_ms", "percent", "bad") == [
        ("mail", 60_000, 99.0, 0),
        ("mail-eu", 1_000, 95.0, 1),
    ]


def test_a_day_without_a_miss_has_no_worst_hour(spark):
    [row] = slo(tables(spark, FAST), with_targets("* wait 5s 99")).collect()

    assert (row.bad, row.burn, row.worst_hour_at, row.worst_hour_burn) == (0, 0.0, None, None)


def test_the_worst_offenders_are_listed_with_their_share(spark):
    kinds = ["a", "b", "b", "b", None]
    ended = [{**SLOW, "kind": kind, "worker": "w"} for kind in kinds] + [FAST]

    found = conform(offenders(tables(spark, *ended), with_targets("* wait 5s 99")), OFFENDERS)

    assert pairs(found, "dimension", "name", "bad", "share", "rank") == [
        ("kind", "a", 1, 0.2, 2),
        ("kind", "b", 3, 0.6, 1),
        ("worker", "w", 5, 1.0, 1),
    ]


def test_only_the_worst_ten_are_listed(spark):
    ended = [{**SLOW, "kind": f"k{n:02}"} for n in range(12)]

    found = offenders(tables(spark, *ended), with_targets("* wait 5s 99"))

    assert [name for (name,) in pairs(found, "name")] == [f"k{n:02}" for n in range(10)]


def test_the_budget_is_that_of_thirty_days_up_to_each_day(spark):
    same = {"queue": "mail", "objective": "wait", "percent": 90.0, "messages": 100}
    days = {DT: 10, day_after(DT): 0, day_after(DT, 29): 5, day_after(DT, 30): 5}
    given = computed(spark, SLO, *({**same, "dt": dt, "bad": bad} for dt, bad in days.items()))

    found = conform(budget({"slo": given}, PipelineSettings()), BUDGET)

    assert pairs(found, "dt", "days", "messages", "bad", "burn", "left") == [
        (DT, 1, 100, 10, 1.0, 0.0),
        (day_after(DT), 2, 200, 10, 0.5, 0.5),
        (day_after(DT, 29), 3, 300, 15, 0.5, 0.5),
        (day_after(DT, 30), 3, 300, 10, 1 / 3, 1 - 1 / 3),
    ]
