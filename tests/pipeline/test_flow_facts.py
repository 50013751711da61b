"""Flows and steps in the lake, and what the pipeline computes of them.

A real application runs them: its jobs, its store and its archiver write the lake.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock import Bury, Penstock, current, sleep, step, wait_event
from penstock.client.flows.builder import FlowBuilder
from penstock.domain.lake.layout import ATTEMPTS, BODIES, FACTS, HISTORY
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.limits import HOUR, MINUTE, SECOND
from penstock.pipeline.jobs.flow_facts import FLOW_FACTS, JOB, PATH_NAMES, flow_facts
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.schemas import conform
from penstock.testing import Kit
from tests.clocks import ManualClock
from tests.pipeline.rows import DT, at, frame, midnight, pairs
from tests.runtime.archiver.driver import ArchiverDriver
from tests.store.driver import StoreDriver


class Night:
    """A flow of one evening, a flow that fails, and one that is redriven on the next day."""

    def __init__(self, folder: Path) -> None:
        self.app = Penstock("sqlite:///not-opened.db")
        self._is_broken = True
        self._declare()
        with Kit(self.app, clock=ManualClock(midnight() + 20 * HOUR)) as self.kit:
            broker = self.app.backend.broker  # type: ignore[attr-defined]
            self.archive = ArchiverDriver(StoreDriver(broker.store, self.kit.clock), folder)
            self.nightly = self._nightly()
            self.failing = self._failing()
            self.plain = self.work.enqueue(1)  # not in a flow
            self.kit.run()
            self.kit.advance("5h")
            self.failing.redrive()
            self._is_broken = False
            self.kit.run()
            self.archive.run()

    def _declare(self) -> None:
        app = self.app

        @app.job(queue="reports")
        def work(minutes: int) -> int:
            self.kit.advance(f"{minutes}m")
            return minutes

        @app.job(queue="reports", attempts=3, backoff="10m")
        async def merge(parts: list[int]) -> str:
            await step("sum", self._take, 2)
            if current().failures == 0:
                raise OSError("the disk is full")
            await sleep("1h")
            answer = await wait_event("approved")
            await step("print", self._take, 3)
            return f"{sum(parts)} {answer}"

        @app.job(queue="reports")
        def fragile() -> None:
            if self._is_broken:
                raise Bury("broken")

        self.work, self.merge, self.fragile = work, merge, fragile

    def _take(self, seconds: int) -> int:
        self.kit.advance(f"{seconds}s")
        return seconds

    def _nightly(self) -> FlowBuilder:
        with self.app.flow("nightly", on_finish=self.work.bind(0)) as flow:
            short = flow.add(self.work, 1, name="short")
            long = flow.add(self.work, 7, name="long")
            merged = flow.add(self.merge, [short, long], name="merge")
            flow.add(self.work, 0, after=[merged.failed()], name="mend")
        self.kit.run(raises=False)
        self.kit.advance("10m")  # the back-off
        self.kit.run()  # it sleeps
        self.kit.advance("1h")
        self.kit.run()  # it waits for a signal
        self.kit.advance("20m")
        self.app.signal("approved", "by ada")
        self.kit.run()
        assert flow.status().state == "done"
        return flow

    def _failing(self) -> FlowBuilder:
        with self.app.flow("failing") as flow:
            first = flow.add(self.fragile, name="first")
            flow.add(self.work, 2, after=[first], name="second")
        self.kit.run(raises=False)
        assert flow.status().state == "failed"
        return flow


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Night:
    return Night(tmp_path_factory.mktemp("night") / "lake")


@pytest.fixture(scope="module")
def endings(night: Night) -> dict[str, dict[str, Any]]:
    """The last ending of each member of the nightly flow, by its name."""
    rows = night.archive.rows(HISTORY)
    return {row["member_name"]: row for row in rows if row["flow_id"] == night.nightly.id}


def test_an_ending_names_its_flow_its_parents_and_the_size_of_its_result(night, endings):
    short, long, merged = (endings[name] for name in ("short", "long", "merge"))

    assert {row["flow_name"] for row in endings.values()} == {"nightly"}
    assert len({row["flow_no"] for row in endings.values()}) == 1
    assert short["flow_parents"] is None
    assert merged["flow_parents"] == f"{short['message_no']},{long['message_no']}"
    assert short["result_size"] == 1
    assert merged["result_size"] == len(json.dumps("8 by ada"))
    roles = [row["flow_role"] for row in endings.values()]
    assert sorted(roles) == ["member", "member", "member", "on_finish"]


def test_the_results_are_beside_the_bodies(night, endings):
    results = {row["id"]: row["result"] for row in night.archive.rows(BODIES)}

    assert results[endings["merge"]["id"]] == '"8 by ada"'
    assert results[endings["long"]["id"]] == "7"
    assert results[night.plain.id] == "1"


def test_an_ending_shows_where_the_time_of_a_durable_job_went(night, endings):
    merged = endings["merge"]

    assert (merged["step_count"], merged["step_ms"]) == (2, 5 * SECOND)
    assert merged["suspended_ms"] == HOUR + 20 * MINUTE
    steps = [
        (one["name"], one["kind"], one["lease_no"], one["took_ms"])
        for one in json.loads(merged["steps"])
    ]
    assert steps == [
        ("sum", "step", 1, 2 * SECOND),
        ("sleep", "sleep", 2, HOUR),
        ("signal approved", "wait", 3, 20 * MINUTE),
        ("print", "step", 4, 3 * SECOND),
    ]


def test_an_attempt_shows_its_flow_its_steps_and_what_suspended_it(night, endings):
    merged = endings["merge"]
    attempts = [r for r in night.archive.rows(ATTEMPTS) if r["id"] == merged["id"]]

    assert {row["flow_no"] for row in attempts} == {merged["flow_no"]}
    assert [(r["outcome"], r["step_count"], r["suspended_by"]) for r in attempts] == [
        ("failed", 1, None),
        ("snoozed", None, "sleep"),
        ("snoozed", None, "wait"),
    ]


def test_a_message_without_flow_and_steps_has_neither(night):
    [plain] = [row for row in night.archive.rows(HISTORY) if row["id"] == night.plain.id]
    names = [column.name for column in HISTORY.columns if column.since == 2]

    assert {name: plain[name] for name in names} == dict.fromkeys(names) | {"result_size": 1}


@pytest.fixture(scope="module")
def facts_of_flows(night: Night, spark) -> list[dict[str, Any]]:
    """Without the runner, which test_real_broker tries with all jobs."""
    lake = SparkLake(spark, str(night.archive.folder))
    tables = {name: lake.read(name) for name in JOB.inputs}
    found = conform(flow_facts(tables, PipelineSettings()), FLOW_FACTS)
    return [row.asDict() for row in found.orderBy("dt", "flow_no").collect()]


def test_a_flow_has_its_times_and_its_critical_path(facts_of_flows):
    [nightly] = [row for row in facts_of_flows if row["name"] == "nightly"]

    assert (nightly["dt"], nightly["outcome"]) == (DT, "done")
    assert (nightly["members"], nightly["done"], nightly["skipped"]) == (4, 3, 1)
    assert nightly["found"] == 3
    assert nightly["critical_path"] == "long > merge"
    assert nightly["critical_members"] == 2
    assert nightly["suspended_ms"] == nightly["critical_suspended_ms"] == HOUR + 20 * MINUTE
    assert nightly["work_ms"] == 8 * MINUTE + 5 * SECOND
    assert nightly["critical_work_ms"] == 7 * MINUTE + 5 * SECOND
    assert nightly["critical_wait_ms"] == 11 * MINUTE  # for `short` to end, and the back-off
    assert nightly["critical_ms"] == nightly["duration_ms"]
    slowest = (nightly["slowest_member"], nightly["slowest_kind"], nightly["slowest_ms"])
    assert slowest == ("merge", "merge", HOUR + 30 * MINUTE + 5 * SECOND)
    assert (nightly["steps"], nightly["attempts"]) == (2, 4)


def test_a_redriven_flow_has_a_row_on_each_day_on_which_it_ended(facts_of_flows):
    failed, done = (row for row in facts_of_flows if row["name"] == "failing")

    assert (failed["outcome"], failed["failed"], failed["found"]) == ("failed", 2, 1)
    assert failed["critical_path"] == "first"
    assert (done["outcome"], done["done"], done["found"]) == ("done", 2, 2)
    assert done["dt"] > failed["dt"]
    assert done["critical_path"] == "first > second"


def test_of_a_long_path_the_last_members_are_named(spark):
    count = PATH_NAMES + 20
    history = [
        {
            "message_no": number,
            "member_name": f"m{number}",
            "flow_no": 1,
            "flow_role": "member",
            "flow_parents": str(number - 1) if number > 1 else None,
            "sent_at": at("10:00:00") + number * SECOND,
            "first_leased_at": at("10:00:00") + number * SECOND,
            "leased_at": at("10:00:00") + number * SECOND,
            "finished_at": at("10:00:01") + number * SECOND,
        }
        for number in range(1, count + 1)
    ]
    data = {"flow_no": 1, "name": "long", "outcome": "done", "created_at": at("10:00:00")}
    ended = {
        "at": at("10:00:01") + count * SECOND,
        "kind": "flow_ended",
        "subject": "f-1",
        "data": json.dumps(data | {"total": count}),
    }
    tables = {
        "history": frame(spark, HISTORY, *history),
        "attempts": frame(spark, ATTEMPTS),
        "facts": frame(spark, FACTS, ended, {"kind": "worker_lost"}),
    }

    found = conform(flow_facts(tables, PipelineSettings()), FLOW_FACTS)

    path = " > ".join(f"m{number}" for number in range(count - PATH_NAMES + 1, count + 1))
    assert pairs(found, "members", "critical_members", "critical_path", "critical_work_ms") == [
        (count, count, path, count * SECOND)
    ]
