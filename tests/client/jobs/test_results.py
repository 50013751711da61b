"""Results of jobs: waiting for them by the handle that `enqueue` returns, or by id."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from penstock import Bury, Cancel, Job, JobFailed, Penstock, Retry
from penstock.domain.errors import InvalidRequest, MessageNotFound
from penstock.domain.message.lifecycle import State
from penstock.wiring.broker import Broker
from tests.client.jobs.driver import JobDriver
from tests.support.waiting import eventually

SOON = "30s"
MANY = 40  # more than asyncio has threads for


@dataclass
class Line:
    what: str
    price: Decimal
    at: datetime | None = None


@pytest.fixture
def price(app: Penstock, queue: str) -> Job[[str], Line]:
    @app.job(queue=queue, kind="price", attempts=1)
    def price(what: str) -> Line:
        if what == "unknown":
            raise KeyError(what)
        return Line(what, Decimal("9.990"))

    return price


def kept(broker: Broker, job_id: str) -> Any:
    return broker.store.read(lambda s: s.results.of([job_id])).result()[job_id].result


def test_a_result_has_the_type_of_the_annotation(
    price: Job[[str], Line], driver: JobDriver
) -> None:
    handle = price.enqueue("paper")
    driver.run_due()

    assert handle.result(SOON) == Line("paper", Decimal("9.990"))
    assert handle.state() is State.DONE


def test_a_result_is_waited_for(price: Job[[str], Line], driver: JobDriver) -> None:
    handle = price.enqueue("paper")
    runs = threading.Timer(0.1, driver.run_due)
    runs.start()

    assert handle.result(timeout=SOON).what == "paper"
    runs.join()


def test_by_its_id_a_result_is_plain_json(
    app: Penstock, price: Job[[str], Line], driver: JobDriver
) -> None:
    handle = price.enqueue("paper")
    driver.run_due()

    plain = {"what": "paper", "price": "9.990", "at": None}
    assert app.jobs.result(handle.id, timeout=SOON) == plain
    assert app.jobs.result(handle) == Line("paper", Decimal("9.990"))
    assert app.jobs.get(handle).result == plain


def test_a_job_enqueued_by_its_kind_has_the_same_result(
    app: Penstock, price: Job[[str], Line], driver: JobDriver
) -> None:
    handle = app.enqueue("price", {"what": "paper"})
    driver.run_due()

    assert isinstance(handle.result(SOON), Line)


async def test_a_handle_can_be_awaited(
    app: Penstock, price: Job[[str], Line], driver: JobDriver
) -> None:
    app.open()
    handles = [await price.enqueue_async(str(n)) for n in range(3)]
    waiting = [asyncio.ensure_future(handle.result_async(SOON)) for handle in handles]
    await asyncio.sleep(0)
    assert not any(one.done() for one in waiting)

    await asyncio.to_thread(driver.run_due)

    assert [line.what for line in await asyncio.gather(*waiting)] == ["0", "1", "2"]
    assert (await handles[0]).what == "0"
    assert await handles[0].state_async() is State.DONE


async def test_many_handles_are_awaited_at_the_same_time(
    app: Penstock, price: Job[[str], Line], driver: JobDriver, broker: Broker
) -> None:
    app.open()
    handles = await price.enqueue_many_async([{"what": str(n)} for n in range(MANY)])
    waiting = [asyncio.ensure_future(handle.result_async(SOON)) for handle in handles]
    await asyncio.to_thread(eventually, lambda: broker.waiting_results.waiting == MANY)

    await asyncio.to_thread(driver.run_due)

    found = await asyncio.gather(*waiting)
    assert [line.what for line in found] == [str(n) for n in range(MANY)]


def test_an_async_job_has_a_result(app: Penstock, queue: str, driver: JobDriver) -> None:
    @app.job(queue=queue)
    async def double(n: int) -> int:
        return 2 * n

    handle = double.enqueue(4)
    driver.run_due()

    assert handle.result(SOON) == 8


def test_a_failed_job_raises_the_remote_traceback(
    price: Job[[str], Line], driver: JobDriver
) -> None:
    handle = price.enqueue("unknown")
    driver.run_due()

    with pytest.raises(JobFailed, match="KeyError: 'unknown'") as failed:
        handle.result(SOON)

    error = failed.value
    assert (error.code, error.job_id, error.state) == ("job_failed", handle.id, State.DEAD)
    assert error.reason == "attempts_exhausted"
    assert "in price: raise KeyError(what)" in (error.error or "")
    assert handle.state() is State.DEAD


@pytest.mark.parametrize(("outcome", "state"), [(Bury, State.DEAD), (Cancel, State.CANCELLED)])
def test_a_job_that_is_buried_or_cancelled_raises_its_reason(
    app: Penstock, queue: str, driver: JobDriver, outcome: type[Exception], state: State
) -> None:
    @app.job(queue=queue)
    def job() -> int:
        raise outcome("closed")

    handle = job.enqueue()
    driver.run_due()

    with pytest.raises(JobFailed, match="closed") as failed:
        handle.result(SOON)
    assert (failed.value.state, failed.value.reason) == (state, "closed")


def test_a_handle_cancels_its_job(price: Job[[str], Line]) -> None:
    handle = price.enqueue("paper")

    handle.cancel("not needed")

    with pytest.raises(JobFailed, match="not needed"):
        handle.result(SOON)


def test_a_result_that_does_not_come_raises_a_timeout(price: Job[[str], Line]) -> None:
    handle = price.enqueue("paper")

    with pytest.raises(TimeoutError, match="still ready"):
        handle.result("50ms")


def test_a_job_without_a_result_is_waited_for_too(
    app: Penstock, queue: str, driver: JobDriver, broker: Broker
) -> None:
    @app.job(queue=queue)
    def quiet() -> None: ...

    @app.job(queue=queue, result="drop")
    def dropping() -> int:
        return 5

    @app.job(queue=queue)
    def untyped():
        return 5

    handles = [quiet.enqueue(), dropping.enqueue(), untyped.enqueue()]
    driver.run_due()

    assert [handle.result(SOON) for handle in handles] == [None, None, None]
    assert [kept(broker, handle.id) for handle in handles] == [None, None, None]


def test_what_is_kept_without_a_type_is_plain_json(
    app: Penstock, queue: str, driver: JobDriver
) -> None:
    @app.job(queue=queue, result="keep")
    def untyped():
        return {"a": (1, None)}

    handle = untyped.enqueue()
    driver.run_due()

    assert handle.result(SOON) == {"a": [1, None]}


def test_none_is_a_result(app: Penstock, queue: str, driver: JobDriver, broker: Broker) -> None:
    @app.job(queue=queue)
    def find() -> int | None:
        return None

    handle = find.enqueue()
    driver.run_due()

    assert handle.result(SOON) is None
    assert kept(broker, handle.id) == "null"


def test_outcomes_in_an_annotation_are_not_results(
    app: Penstock, queue: str, driver: JobDriver, broker: Broker
) -> None:
    @app.job(queue=queue)
    def outcome_or_nothing() -> Retry | type[Cancel] | None:
        return None

    @app.job(queue=queue)
    def outcome_or_value() -> int | Retry:
        return 17

    nothing, value = outcome_or_nothing.enqueue(), outcome_or_value.enqueue()
    driver.run_due()

    assert (kept(broker, nothing.id), kept(broker, value.id)) == (None, "17")
    assert value.result(SOON) == 17


def test_a_result_that_cannot_be_stored_buries_the_job(
    app: Penstock, queue: str, driver: JobDriver
) -> None:
    @app.job(queue=queue)
    def strange() -> dict[str, Any]:
        return {"a": object()}

    handle = strange.enqueue()
    driver.run_due()

    with pytest.raises(JobFailed, match="the job was done, but job 'strange': its result cannot"):
        handle.result(SOON)


@pytest.mark.no_store("declaring")
def test_a_type_that_cannot_be_json_cannot_be_kept() -> None:
    app = Penstock("sqlite:///never-opened.db")

    with pytest.raises(InvalidRequest, match="cannot be kept"):

        @app.job(result="keep")
        def strange() -> threading.Thread:
            raise NotImplementedError

    with pytest.raises(InvalidRequest, match="'keep' or 'drop'"):

        @app.job(result="maybe")  # type: ignore[call-overload]
        def wrong() -> int:
            raise NotImplementedError

    @app.job
    def fine() -> threading.Thread:
        raise NotImplementedError

    assert not fine.keeps_result


@pytest.mark.no_store("declaring")
def test_a_result_of_another_type_is_reported_where_it_is_read() -> None:
    app = Penstock("sqlite:///never-opened.db")

    @app.job
    def count() -> int:
        raise NotImplementedError

    with pytest.raises(InvalidRequest, match="does not match its return annotation"):
        count.returns.read("many")


def test_an_unknown_job_has_no_result(app: Penstock, driver: JobDriver) -> None:
    with pytest.raises(MessageNotFound):
        app.jobs.result("01ba5022-c200-7384-8bcb-000000000000", timeout=SOON)


def test_handles_are_equal_if_they_are_of_the_same_job(price: Job[[str], Line]) -> None:
    one, other = price.enqueue("a"), price.enqueue("a")

    assert one != other
    assert len({one, other, one}) == 2
    assert repr(one) == f"Enqueued(id={one.id!r}, is_duplicate=False)"
