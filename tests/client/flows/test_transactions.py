"""Flows in the caller's own transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from penstock import Penstock, chain, previous
from penstock.domain.errors import FlowNotFound
from tests.client.environments import Backend, Environment
from tests.client.flows.conftest import FlowDriver

pytestmark = pytest.mark.environments("own transaction")


@pytest.fixture
def tx(app: Penstock, url: str, environment: Environment) -> Iterator[Any]:
    app.open()
    if environment.backend is Backend.SQLITE:
        path = url.removeprefix("sqlite:///").partition("?")[0]
        connection: Any = sqlite3.connect(path, check_same_thread=False)
    else:
        connection = psycopg.connect(url)
    yield connection
    connection.close()


@pytest.mark.environments("sync connection")
def test_a_flow_exists_exactly_if_the_caller_commits(
    app: Penstock, jobs: SimpleNamespace, driver: FlowDriver, ran: list[Any], tx: Any
) -> None:
    app.job_source()  # creates the queue
    lost = chain(jobs.fetch.bind(1), jobs.fetch.bind(previous)).enqueue(tx=tx)
    tx.rollback()
    with pytest.raises(FlowNotFound):
        lost.status()

    with app.flow("nightly", tx=tx) as f:
        f.add(jobs.merge, [f.add(jobs.fetch, 2)])
    tx.commit()
    driver.run_all()

    assert ran == [("fetch", 2), ("merge", [20])]
    assert f.wait("5s").state == "done"


@pytest.mark.environments("sync connection")
def test_a_flow_is_cancelled_in_a_transaction(
    app: Penstock, jobs: SimpleNamespace, driver: FlowDriver, ran: list[Any], tx: Any
) -> None:
    flow = chain(jobs.fetch.bind(1), jobs.fetch.bind(previous)).enqueue()

    assert flow.cancel(tx=tx).state == "cancelled"
    tx.rollback()
    assert flow.status().state == "running"

    flow.cancel(tx=tx)
    tx.commit()
    driver.run_all()
    assert ran == []


@pytest.mark.environments("sync connection")
def test_members_are_added_exactly_if_the_caller_commits(
    app: Penstock, jobs: SimpleNamespace, driver: FlowDriver, ran: list[Any], tx: Any
) -> None:
    app.job_source()  # creates the queue
    with app.batch("import") as batch:
        batch.add_many(jobs.fetch, [{"n": 1}], tx=tx)
        tx.rollback()
        [kept] = batch.add_many(jobs.fetch, [jobs.fetch.args(2)], tx=tx)
        tx.commit()
    driver.run_all()

    assert ran == [("fetch", 2)]
    assert kept.result("5s") == 20
