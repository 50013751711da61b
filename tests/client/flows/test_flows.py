"""Graphs of jobs."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from penstock import Batch, JobFailed, Penstock, chain, current
from penstock.client.flows.builder import FlowBuilder
from penstock.domain.errors import InvalidRequest, WrongState
from tests.client.flows.conftest import FlowDriver
from tests.edge.api import a_name

SOON = "5s"


def test_results_of_members_are_arguments(
    app: Penstock, jobs: SimpleNamespace, driver: FlowDriver, ran: list[Any]
) -> None:
    with app.flow("nightly") as f:
        a = f.add(jobs.fetch, 1)
        b = f.add(jobs.fetch, a)
        total = f.add(jobs.merge, [a, b], plus=1)
    driver.run_all()

    assert ran == [("fetch", 1), ("fetch", 10), ("merge", [10, 100])]
    assert total.result(SOON) == 111
    status = f.wait(SOON)
    assert (status.state, status.name, status.done, status.progress) == ("done", "nightly", 3, 1.0)


def test_after_orders_members_and_says_what_a_failure_does(
    app: Penstock, jobs: SimpleNamespace, driver: FlowDriver, ran: list[Any]
) -> None:
    with app.flow("nightly", on_failure=jobs.note.bind("called back")) as f:
        bad = f.add(jobs.fetch, -1)
        never = f.add(jobs.note, "never", after=[bad])
        f.add(jobs.note, "handled", after=[bad.failed()])
        f.add(jobs.note, "anyway", after=[never.ended()])
    driver.run_all()

    assert sorted(ran[1:]) == ["anyway", "called back", "handled"]
    with pytest.raises(JobFailed) as failure:
        never.result(SOON)
    assert failure.value.reason == "parent_failed"
    assert f.status().state == "failed"


def test_a_failed_flow_is_redriven(
    app: Penstock, jobs: SimpleNamespace, driver: FlowDriver, queue: str, ran: list[Any]
) -> None:
    is_broken = [True]

    @app.job(queue=queue, attempts=1)
    def flaky() -> int:
        if is_broken[0]:
            raise RuntimeError("not yet")
        return 5

    with app.flow("nightly") as f:
        last = f.add(jobs.merge, [f.add(flaky)])
    driver.run_all()
    assert {m.state.value for m in f.members()} == {"dead", "cancelled"}

    is_broken[0] = False
    assert f.redrive() == 1
    driver.run_all()
    assert last.result(SOON) == 5
    assert f.wait(SOON).state == "done"


def test_members_are_handles_of_their_jobs(
    app: Penstock, jobs: SimpleNamespace, driver: FlowDriver, ran: list[Any]
) -> None:
    with app.flow("nightly") as f:
        first = f.add(jobs.fetch, 1)
        second = f.add(jobs.fetch, 2, after=[first])
        third = f.add(jobs.note, "c", after=[second])
    with app.flow("other") as other:
        unsent = other.add(jobs.note, "d")

    assert (first.state(), second.state()) == ("ready", "waiting")
    assert second.cancel("not today").state == "cancelled"
    assert (second.state(), third.state()) == ("cancelled", "cancelled")
    driver.run_all()
    assert first.result(SOON) == 10
    with pytest.raises(JobFailed, match="not today"):
        second.result(SOON)
    assert unsent.state() == "done"


def test_a_flow_is_cancelled_and_takes_nothing_more(
    app: Penstock, jobs: SimpleNamespace, driver: FlowDriver, ran: list[Any]
) -> None:
    with app.flow("nightly") as f:
        f.add(jobs.note, "b", after=[f.add(jobs.note, "a")])

    assert f.cancel("wrong data").state == "cancelled"

    driver.run_all()
    assert ran == []
    with pytest.raises(WrongState):
        f.add(jobs.note, "c")
    with pytest.raises(WrongState, match="create it again"):
        f.redrive()


def test_a_flow_with_a_key_is_enqueued_once(
    app: Penstock, jobs: SimpleNamespace, driver: FlowDriver, ran: list[Any]
) -> None:
    key = a_name("key")

    def enqueue() -> tuple[FlowBuilder, Any]:
        with app.flow("nightly", dedup_key=key, dedup_window="1d") as f:
            return f, f.add(jobs.fetch, 1)

    (first, fetched), (second, again) = enqueue(), enqueue()
    steps = [chain(jobs.fetch.bind(2)).enqueue("nightly", dedup_key=key)]

    assert (first.is_duplicate, second.is_duplicate) == (False, True)
    assert [second.id, steps[0].id] == [first.id, first.id]
    driver.run_all()
    assert ran == [("fetch", 1)]
    assert fetched.result(SOON) == again.result(SOON) == 10
    with pytest.raises(InvalidRequest, match="dedup_key"):
        app.flow("nightly", dedup_window="1d")


def test_a_job_adds_members_to_its_flow_while_it_runs(
    app: Penstock, jobs: SimpleNamespace, driver: FlowDriver, queue: str, ran: list[Any]
) -> None:
    @app.job(queue=queue)
    def split() -> None:
        flow = current().flow
        parts = [flow.add(jobs.fetch, n) for n in (1, 2)]
        flow.add(jobs.merge, parts)

    with app.flow("nightly", on_success=jobs.note.bind("done")) as f:
        f.add(split)
    driver.run_all()

    assert ran[2:] == [("merge", [10, 20]), "done"]
    assert f.status().total == 4
    assert app.flow_by_id(f.id).status() == f.status()


def test_a_flow_that_a_job_creates_names_the_job(
    app: Penstock, jobs: SimpleNamespace, driver: FlowDriver, queue: str, ran: list[Any]
) -> None:
    inner: list[str] = []

    @app.job(queue=queue)
    def start() -> None:
        with app.flow("inner") as f:
            f.add(jobs.fetch, 1)
        inner.append(f.id)

    with app.flow("outer") as f:
        member = f.add(start)
    driver.run_all()

    assert ran == [("fetch", 1)]
    assert app.flow_by_id(inner[0]).status().created_by == member.id
    [listed] = f.members()
    assert listed.created == tuple(inner)
    assert f.status().created_by is None


def test_a_job_outside_of_a_flow_has_none(
    app: Penstock, driver: FlowDriver, queue: str, ran: list[Any]
) -> None:
    @app.job(queue=queue)
    def alone() -> None:
        with pytest.raises(InvalidRequest, match="not a member of a flow"):
            _ = current().flow
        ran.append("alone")

    alone.enqueue()
    driver.run_all()
    assert ran == ["alone"]


def test_the_end_of_a_flow_is_waited_for(
    app: Penstock, jobs: SimpleNamespace, driver: FlowDriver
) -> None:
    with app.flow("nightly") as f:
        f.add(jobs.note, "a")
    with pytest.raises(TimeoutError, match="1 members have not ended"):
        f.wait("0s")

    runs = threading.Timer(0.1, driver.run_all)
    runs.start()
    assert f.wait(SOON).state == "done"
    runs.join()


def test_nothing_is_enqueued_if_the_block_raises(
    app: Penstock, jobs: SimpleNamespace, driver: FlowDriver, ran: list[Any]
) -> None:
    def build() -> None:
        with f:
            handles.append(f.add(jobs.note, "a"))
            raise RuntimeError

    f = app.flow("nightly")
    handles: list[Any] = []
    with pytest.raises(RuntimeError):
        build()

    driver.run_all()
    assert ran == []
    with pytest.raises(InvalidRequest, match="not enqueued"):
        _ = handles[0].id


def test_mistakes_are_found_before_anything_is_sent(
    app: Penstock, jobs: SimpleNamespace, queue: str
) -> None:
    @app.job(queue=queue, unique=True)
    def once() -> int:
        return 1

    f = app.flow("nightly")
    a = f.add(jobs.fetch, 1, name="a")
    with pytest.raises(InvalidRequest, match="not kept"):
        f.add(jobs.fetch, f.add(jobs.note, "x"))
    with pytest.raises(InvalidRequest, match="must contain members only"):
        f.add(jobs.merge, [a, 3])
    with pytest.raises(InvalidRequest, match="unique"):
        f.add(once)
    with pytest.raises(InvalidRequest, match="already has a member 'a'"):
        f.add(jobs.fetch, 2, name="a")
    with pytest.raises(InvalidRequest, match="argument 'plus'"):
        f.add(jobs.merge, [a], plus="many")
    with pytest.raises(InvalidRequest, match="missing a required argument"):
        f.add(jobs.merge, plus=1)
    with pytest.raises(InvalidRequest, match="after takes members"):
        f.add(jobs.note, "x", after=["a"])
    with pytest.raises(InvalidRequest, match=r"job\.bind"):
        f.add("fetch")  # type: ignore[arg-type]


def test_options_of_a_job_count_for_its_member(
    app: Penstock, jobs: SimpleNamespace, driver: FlowDriver, clock: Any, ran: list[Any]
) -> None:
    with app.flow("nightly") as f:
        a = f.add(jobs.note, "a")
        f.add(jobs.note.using(delay="1h", tags=("late",)), "b", after=[a])
    driver.run_all()
    assert ran == ["a"]

    clock.advance(minutes=60)
    driver.run_all()
    assert ran == ["a", "b"]


def test_jobs_of_chunks_are_members_without_inputs(app: Penstock, queue: str) -> None:
    @app.job(queue=queue, kind="store", batch=Batch())
    def store(rows: list[int]) -> None: ...

    @app.job(queue=queue)
    def count() -> int:
        return 3

    f = app.flow("nightly")
    a = f.add(count)
    f.add(store, 17, after=[a])
    with pytest.raises(InvalidRequest, match="takes no results"):
        f.add(store, a)
    assert f.enqueue().status().total == 2
