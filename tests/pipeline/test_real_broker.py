"""All jobs over the lake of a real broker, whose queues are mostly not busy."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.domain.limits import DAY, MINUTE
from penstock.pipeline.registry import MODULES, computed_tables
from penstock.pipeline.report.contents import report
from penstock.pipeline.runner import DaySpan
from tests.pipeline.lake_driver import FEW_CANDIDATES, LakeDriver
from tests.pipeline.real_broker import (
    FLOW,
    JUMP_DAYS,
    MEGABYTE,
    RELEASE,
    ROUTE,
    UNICODE,
    RealBroker,
)
from tests.pipeline.rows import day_after
from tests.runtime.archiver.driver import ArchiverDriver
from tests.services.driver import PATTERN
from tests.store.conftest import clock, open_store, store, store_driver
from tests.store.driver import StoreDriver

__all__ = ["clock", "open_store", "store", "store_driver"]

Rows = list[dict[str, Any]]
CAN_BE_NEGATIVE = ("growth_per_week", "backlog_growth", "left")


@pytest.fixture
def backend() -> str:
    """The archiver writes the same lake from every store: its own tests compare them."""
    return "sqlite"


@pytest.fixture
def broker(store_driver: StoreDriver, tmp_path: Path) -> RealBroker:
    return RealBroker(ArchiverDriver(store_driver, tmp_path / "lake"))


def test_all_jobs_compute_plausible_numbers_from_the_lake_of_a_real_broker(broker, spark):
    broker.play()
    driver = LakeDriver(spark, broker.folder)
    settings = replace(FEW_CANDIDATES, storage_bytes=1024**3)

    runs = driver.run(settings=settings)

    assert {(run.status, run.note) for run in runs} == {("done", "")}
    assert {run.job for run in runs} == set(MODULES)
    found = {name: driver.rows(name) for name in computed_tables()}
    assert [row for row in found["quality"] if not row["is_passed"]] == []
    assert [name for name, rows in found.items() if not rows] == []
    for name, rows in found.items():
        assert _impossible(rows) == [], name
    _check_capacity(found["capacity"], broker)
    _check_times(found["lifecycle"], broker)
    _check_trouble(found, broker)
    _check_workers_and_routes(found, broker)
    assert broker.first_day in report(driver.lake, DaySpan())


def _check_capacity(rows: Rows, broker: RealBroker) -> None:
    of = {(row["dt"], row["queue"]): row for row in rows}
    first = broker.first_day
    assert "idle" not in {row["queue"] for row in rows}
    paused = of[first, "paused"]
    assert (paused["messages"], paused["backlog_peak"], paused["backlog_end"]) == (0, 5, 5)
    assert (paused["payload"], paused["peak_to_average"], paused["days_offline"]) == (None,) * 3
    assert of[first, "dead-letters"]["backlog_end"] == 3
    single = of[first, "single"]
    assert (single["messages"], single["peak_to_average"]) == (1, pytest.approx(1_440))
    labelled = of[first, "labelled"]
    assert labelled["moved"] == pytest.approx(2 * MEGABYTE, rel=0.01)
    assert labelled["days_offline_at_peak"] > 0
    assert of[first, "deleted"]["messages"] == 5  # of both queues of this name
    assert of[first, "*"]["messages"] == sum(
        row["messages"] for (day, queue), row in of.items() if day == first and queue != "*"
    )
    quiet = of[broker.quiet_day, "*"]
    assert (quiet["messages"], quiet["backlog_end"]) == (0, 9)


def _check_times(rows: Rows, broker: RealBroker) -> None:
    of = {row["queue"]: row for row in rows}
    assert (of["single"]["wait_ms"], of["single"]["service_ms"]) == (0, 0)
    assert (of["night"]["dt"], of["night"]["total_ms"]) == (day_after(broker.busy_day), 2)
    assert of["jumped"]["wait_ms"] == JUMP_DAYS * DAY
    assert (of["cancelled"]["dt"], of["cancelled"]["service_ms"]) == (broker.last_day, None)


def _check_trouble(every: dict[str, Rows], broker: RealBroker) -> None:
    found = {
        name: [row for row in rows if row["dt"] != broker.busy_day] for name, rows in every.items()
    }
    [stuck] = found["poison_messages"]
    assert (stuck["queue"], stuck["patterns"], stuck["kind"]) == ("stuck", "loops", None)
    [failing] = found["poison_kinds"]
    assert (failing["kind"], failing["failing_ratio"], failing["is_poison"]) == (None, 1.0, True)
    assert failing["common_error"] == f"no {UNICODE}"
    [kind] = [r for r in found["rollups"] if r["grain"] == "day" and r["dimension"] == "kind"]
    assert (kind["name"], kind["finished"], kind["wait_p99_ms"]) == (UNICODE, 1, 0)
    missed = {(r["queue"], r["objective"]) for r in found["slo"] if r["bad"]}
    assert missed == {("failing", "success"), ("jumped", "wait")}
    assert {r["route"] for r in found["breaker_tuning"]} == {ROUTE, "*"}
    assert {r["unfinished"] for r in found["scaling_backtest"]} == {0}


def _check_workers_and_routes(found: dict[str, Rows], broker: RealBroker) -> None:
    of_day = {
        name: [row for row in rows if row["dt"] == broker.busy_day] for name, rows in found.items()
    }
    assert {(r["name"], r["release"]) for r in of_day["known_workers"]} == {
        ("worker-1", RELEASE),
        ("worker-2", RELEASE),
    }
    starved = [(r["queue"], r["by_queue"], r["wait_ms"]) for r in of_day["starvation"]]
    assert starved == [("urgent", "bulk", 3 * MINUTE)]
    [release] = of_day["poison_releases"]
    assert (release["kind"], release["release"], release["failing"]) == ("refund", RELEASE, 2)
    [route] = of_day["flapping_routes"]
    assert (route["route"], route["opened"], route["open_ms"]) == (PATTERN, 1, 10 * MINUTE)
    [silent] = of_day["silent_workers"]
    assert (silent["name"], silent["lost"], silent["expired"]) == ("worker-2", 1, 1)
    [cost] = of_day["outage_cost"]
    assert (cost["route"], cost["queue"], cost["late"]) == (PATTERN, "payments", 2)
    [flow] = of_day["flow_facts"]
    assert (flow["name"], flow["critical_path"]) == (FLOW, "first > second")
    [wrong] = of_day["quarantine"]
    assert (wrong["table"], wrong["problems"]) == ("history", "negative_service")


def _impossible(rows: Rows) -> list[tuple[str, float]]:
    """Numbers that are not finite, or negative although they are not a trend."""
    numbers = [
        (name, value)
        for row in rows
        for name, value in row.items()
        if isinstance(value, int | float)
    ]
    return [
        (name, value)
        for name, value in numbers
        if not math.isfinite(value) or (value < 0 and name not in CAN_BE_NEGATIVE)
    ]
