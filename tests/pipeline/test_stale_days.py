"""How many days each job computes when a day is new, and when rows come late."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.domain.lake.layout import ATTEMPTS, BACKLOG, FACTS, HISTORY
from penstock.pipeline.registry import MODULES
from tests.pipeline.lake_driver import FEW_CANDIDATES, LakeDriver
from tests.pipeline.rows import DT, at, day_after

DAYS = [day_after(DT, n) for n in range(3)]
NEW_DAY = day_after(DT, 3)
ROUTE = "/shop/.*"


@pytest.fixture(scope="module")
def computed(spark, planned_once, tmp_path_factory: pytest.TempPathFactory) -> LakeDriver:
    """Three days, for which every job has run: made once, because that takes long."""
    driver = LakeDriver(spark, tmp_path_factory.mktemp("computed") / "lake")
    for day in DAYS:
        archive(driver, day)
    worker = {"name": "w", "queues": ["mail"], "labels": {"release": "1.0"}}
    data = json.dumps(worker)
    fact = {"kind": "worker_registered", "subject": "w-1", "at": at("06:00:00"), "data": data}
    driver.archive(FACTS, fact)
    driver.run(settings=FEW_CANDIDATES)
    return driver


@pytest.fixture
def lake(computed: LakeDriver, tmp_path: Path) -> LakeDriver:
    return computed.copy_to(tmp_path / "lake")


def archive(driver: LakeDriver, day: str) -> None:
    noon = at("12:00:00", day)
    driver.archive(HISTORY, {"finished_at": noon, "route": ROUTE, "leased_by": "w-1"})
    driver.archive(ATTEMPTS, {"ended_at": noon})
    driver.archive(BACKLOG, {"at": noon})


def days_of_jobs(driver: LakeDriver, *names: str) -> dict[str, list[str]]:
    """Of all jobs, or of those and the ones that they need."""
    found: dict[str, list[str]] = {}
    for job, day in driver.ran(*names, settings=FEW_CANDIDATES):
        found.setdefault(job, []).append(day)
    return found


def test_a_new_day_is_the_only_one_that_is_computed(lake):
    archive(lake, NEW_DAY)

    assert days_of_jobs(lake) == {key: [NEW_DAY] for key in MODULES}


def test_a_late_fact_leaves_the_days_alone_whose_workers_are_the_same(lake):
    lake.archive(FACTS, {"kind": "worker_left", "subject": "w-1", "at": at("13:00:00")})

    found = days_of_jobs(lake)

    assert found.pop("known_workers") == DAYS
    assert found == {
        "quality": DAYS[:2],
        "poison": DAYS[:1],
        "flow_facts": DAYS[:1],
        "outage_cost": DAYS[:2],
    }


def test_a_late_registration_reaches_all_days_on_which_the_worker_is_known(lake):
    lake.archive(FACTS, {"kind": "worker_registered", "subject": "w-2", "at": at("13:00:00")})

    found = days_of_jobs(lake, "poison", "starvation")

    assert found["known_workers"] == found["poison"] == found["starvation"] == DAYS


def test_a_late_message_does_not_change_the_workers_that_are_known(lake):
    lake.archive(HISTORY, {"finished_at": at("13:00:00"), "route": ROUTE, "leased_by": "w-1"})

    found = days_of_jobs(lake, "poison", "starvation", "breaker_tuning")

    assert found["known_workers"] == found["poison"] == DAYS[:1]
    assert found["starvation"] == found["breaker_tuning"] == DAYS[:2]
