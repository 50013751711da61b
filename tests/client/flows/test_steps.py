"""Chains, groups and batches."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock import Penstock, chain, group, previous
from penstock.domain.errors import InvalidRequest
from tests.client.flows.conftest import FlowDriver

SOON = "5s"


def test_a_chain_passes_results_on(jobs: SimpleNamespace, driver: FlowDriver, ran: Any) -> None:
    flow = chain(jobs.fetch.bind(1), jobs.fetch.bind(previous), jobs.note.bind("end")).enqueue()
    driver.run_all()

    assert ran == [("fetch", 1), ("fetch", 10), "end"]
    assert flow.wait(SOON).name == "fetch"


def test_a_group_passes_a_list_on(jobs: SimpleNamespace, driver: FlowDriver, ran: Any) -> None:
    parts = group(*(jobs.fetch.bind(n) for n in range(4)))
    flow = parts.then(jobs.merge.bind(previous, plus=1)).enqueue("sums")
    driver.run_all()

    assert flow["merge"].result(SOON) == 61
    assert sorted(m.name or "" for m in flow.members()) == [
        "fetch", "fetch-2", "fetch-3", "fetch-4", "merge",
    ]  # fmt: skip


def test_chains_and_groups_nest(jobs: SimpleNamespace, driver: FlowDriver, ran: Any) -> None:
    inner = chain(jobs.fetch.bind(1), jobs.fetch.bind(previous))
    flow = chain(
        jobs.note.bind("begin"),
        group(inner, jobs.fetch.bind(2)),
        jobs.merge.bind(previous),
        group(jobs.fetch.bind(previous), jobs.fetch.bind(previous)),
    ).enqueue("nested")
    driver.run_all()

    assert ran[0] == "begin"
    assert flow["0.fetch-2"].result(SOON) == 100
    assert flow["merge"].result(SOON) == 120
    assert ran[-2:] == [("fetch", 120), ("fetch", 120)]


def test_a_chain_is_a_part_of_a_graph(
    app: Penstock, jobs: SimpleNamespace, driver: FlowDriver, ran: Any
) -> None:
    with app.flow("nightly") as f:
        first = f.add(jobs.fetch, 1)
        sub = group(jobs.fetch.bind(previous), jobs.fetch.bind(2))
        ends = f.add(sub, after=[first], name="sub")
        f.add(jobs.merge, ends)
    driver.run_all()

    assert ran[-1] == ("merge", [100, 20])
    assert f["sub.fetch"].result(SOON) == 100


def test_a_failed_link_cancels_the_rest_of_the_chain(
    jobs: SimpleNamespace, driver: FlowDriver, ran: Any
) -> None:
    flow = chain(jobs.fetch.bind(-1), jobs.fetch.bind(previous), jobs.note.bind("x")).enqueue()
    driver.run_all()

    assert ran == [("fetch", -1)]
    assert flow.status().failed == 3


def test_mistakes_in_steps(jobs: SimpleNamespace) -> None:
    with pytest.raises(InvalidRequest, match="has no step before it"):
        chain(jobs.fetch.bind(previous)).enqueue()
    with pytest.raises(InvalidRequest, match="at least one step"):
        group()
    with pytest.raises(InvalidRequest, match="a step is"):
        chain("fetch")
    with pytest.raises(InvalidRequest, match="argument 'n'"):
        chain(jobs.fetch.bind("x")).enqueue()


def test_a_batch_calls_back_when_it_is_closed(
    app: Penstock, jobs: SimpleNamespace, driver: FlowDriver, ran: Any
) -> None:
    batch = app.batch("import", on_success=jobs.note.bind("all done"))
    with batch:
        batch.add(jobs.fetch, 1)
        handles = batch.add_many(jobs.fetch, [jobs.fetch.args(2), {"n": 3}])
        driver.run_all()
        assert batch.status().is_open
        assert "all done" not in ran

    driver.run_all()
    assert ran[-1] == "all done"
    assert [handle.result(SOON) for handle in handles] == [20, 30]
    assert batch.wait(SOON).total == 3


def test_a_batch_whose_block_raises_is_cancelled(
    app: Penstock, jobs: SimpleNamespace, driver: FlowDriver, ran: Any
) -> None:
    batch = app.batch("import", on_finish=jobs.note.bind("ended"))

    def fill() -> None:
        with batch:
            batch.add(jobs.fetch, 1)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fill()

    driver.run_all()
    assert ran == ["ended"]
    assert batch.status().state == "cancelled"
