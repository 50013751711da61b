"""Jobs in the caller's own transaction.  tests/store/callers covers all kinds of transactions."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from typing import Any

import asyncpg
import psycopg
import pytest

from penstock import JobFailed, Penstock, current
from penstock.domain.errors import InvalidRequest, LeaseLost
from penstock.domain.message.lease import Verb
from penstock.worker.outcomes import NOT_COMMITTED
from tests.client.environments import Backend, Environment
from tests.client.jobs.driver import JobDriver

pytestmark = pytest.mark.environments("own transaction")


@pytest.fixture
def tx(app: Penstock, url: str, environment: Environment) -> Iterator[Any]:
    app.open()
    if environment.backend is Backend.SQLITE:
        path = url.removeprefix("sqlite:///").partition("?")[0]
        connection: Any = sqlite3.connect(path, check_same_thread=False)  # jobs also use it
    else:
        connection = psycopg.connect(url)
    yield connection
    connection.close()


@pytest.mark.environments("sync connection")
def test_a_job_exists_exactly_if_the_caller_commits(app, queue, driver, tx):
    @app.job(queue=queue)
    def ship(order: int) -> None: ...

    app.job_source()
    ship.using(tx=tx).enqueue(1)
    tx.rollback()
    assert driver.claim() == []

    ship.using(tx=tx).enqueue_many([{"order": 2}, {"order": 3}])
    tx.commit()
    assert [work.body for work in driver.claim()] == ['{"order":2}', '{"order":3}']


@pytest.mark.environments("sync connection")
def test_a_missing_queue_is_made_in_the_callers_transaction_as_it_was_declared(
    app, queue, clock, tx
):
    app.queue(queue, max_messages=1)

    @app.job(queue=queue)
    def ship(order: int) -> None: ...

    ship.using(tx=tx).enqueue(1)
    tx.rollback()
    ship.using(tx=tx).enqueue(2)
    tx.commit()

    [work] = JobDriver(app, clock, queue).claim()
    assert work.body == '{"order":2}'
    assert queue in app.queues


@pytest.mark.environments("asyncpg")
async def test_an_async_caller_has_an_async_transaction(app, queue, driver, url):
    @app.job(queue=queue)
    def ship(order: int) -> None: ...

    connection = await asyncpg.connect(url)
    for order, is_kept in ((1, False), (2, True)):
        transaction = connection.transaction()
        await transaction.start()
        await ship.using(tx=connection).enqueue_async(order)
        await (transaction.commit() if is_kept else transaction.rollback())
    await connection.close()

    assert [work.body for work in driver.claim()] == ['{"order":2}']


def test_a_job_completes_itself_exactly_if_its_transaction_is_committed(app, queue, driver, tx):
    @app.job(queue=queue, backoff="0s")
    def ship(is_kept: bool) -> None:
        current().complete(tx=tx)
        if is_kept:
            tx.commit()
        else:
            tx.rollback()

    ship.enqueue_many([{"is_kept": True}, {"is_kept": False}])
    kept, lost = driver.claim()
    acts = [driver.act_of(kept), driver.act_of(lost)]
    done, failed = driver.act(*acts)

    assert [act.verb for act in acts] == [Verb.FAIL, Verb.FAIL]
    assert acts[1].text == NOT_COMMITTED
    assert isinstance(done, LeaseLost)  # it had ended already
    assert failed is None
    assert [work.id for work in driver.claim()] == [lost.id]


def test_a_result_is_kept_exactly_if_its_transaction_is_committed(app, queue, driver, tx):
    @app.job(queue=queue, attempts=1)
    def ship(is_kept: bool) -> str:
        current().complete(tx=tx, result={"is_kept": is_kept})
        if is_kept:
            tx.commit()
        else:
            tx.rollback()
        return "dropped: it has completed itself"

    kept, lost = ship.enqueue_many([{"is_kept": True}, {"is_kept": False}])
    driver.act(*[driver.act_of(job) for job in driver.claim()])

    assert app.jobs.result(kept.id, timeout="30s") == {"is_kept": True}
    with pytest.raises(JobFailed, match="was not committed"):
        lost.result("30s")


def test_a_job_that_is_not_held_any_more_cannot_be_completed(app, queue, driver, tx, clock):
    seen = []

    @app.job(queue=queue)
    def ship() -> None:
        clock.advance(minutes=5)
        driver.claim()
        with pytest.raises(LeaseLost):
            current().complete(tx=tx)
        seen.append(current().is_completed)

    ship.enqueue()
    driver.act_of(driver.claim()[0])

    assert seen == [False]


@pytest.mark.no_store("server")
def test_a_server_elsewhere_is_not_in_the_callers_database(job_server, queue):
    with Penstock(job_server.url) as remote:
        with pytest.raises(InvalidRequest, match="open Penstock on the URL of that database"):
            remote.enqueue("ship", {}, queue=queue, tx=object())
        with pytest.raises(InvalidRequest, match="open Penstock on the URL of that database"):
            asyncio.run(remote.enqueue_async("ship", {}, queue=queue, tx=object()))


def test_an_object_that_is_not_a_transaction_is_rejected(app, queue):
    app.open()

    with pytest.raises(InvalidRequest):
        app.enqueue("ship", {}, queue=queue, tx="transaction")


@pytest.mark.no_store("embedded")
def test_a_file_is_opened_before_the_transaction_because_opening_waits_for_it(tmp_path):
    app = Penstock(f"sqlite:///{tmp_path / 'jobs.db'}?checksums=off")

    with pytest.raises(InvalidRequest, match=r"call app.open\(\) before"):
        app.enqueue("ship", {}, tx=object())


@pytest.mark.environments("sync connection")
def test_a_job_is_cancelled_or_moved_exactly_if_the_caller_commits(app, queue, tx, clock):
    @app.job(queue=queue)
    def ship(order: int) -> None: ...

    first, second = ship.enqueue(1), ship.enqueue(2)
    for end in (tx.rollback, tx.commit):
        app.jobs.cancel(first, tx=tx)
        app.jobs.reschedule(second, delay="1h", tx=tx)
        end()
        states = [app.jobs.get(one).state for one in (first, second)]
        assert states == (["ready"] * 2 if end == tx.rollback else ["cancelled", "waiting"])
