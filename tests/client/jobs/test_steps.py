"""Durable steps of jobs: what is recorded is not run again, in whatever form the handler is."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any
from uuid import UUID

import msgspec
import pytest

from penstock import Bury, current, step, step_sync
from penstock.api.jobs import steps
from penstock.client.values.step_outcomes import OutcomeType
from penstock.domain.errors import InvalidRequest, LeaseLost
from penstock.domain.message.lease import Verb
from penstock.worker.claimed_job import JobAct

RECEIPT = UUID(int=17)


class Payment(msgspec.Struct):
    id: UUID
    cents: int


class Shop:
    """Records its calls."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def charge(self, cents: int) -> Payment:
        self.calls.append(("charge", cents))
        return Payment(RECEIPT, cents)

    async def ship(self, address: str) -> tuple[str, int]:
        self.calls.append(("ship", address))
        return address, len(self.calls)


@pytest.fixture
def shop() -> Shop:
    return Shop()


def run_until_done(driver: Any) -> list[Verb]:
    """Run the job again and again; its back-off is zero."""
    verbs = []
    while jobs := driver.claim():
        acts = [driver.act_of(job) for job in jobs]
        driver.act(*acts)
        verbs += [act.verb for act in acts]
    return verbs


def test_an_async_handler_continues_behind_the_steps_it_has_recorded(app, queue, driver, shop):
    seen = []

    @app.job(queue=queue, backoff="0s")
    async def order(cents: int) -> None:
        payment = await step("charge", shop.charge, cents)
        shipped = await step("ship", shop.ship, address="Paris")
        seen.append((payment, shipped))
        if len(seen) < 3:
            raise RuntimeError("broken")

    order.enqueue(5)

    assert run_until_done(driver) == [Verb.FAIL, Verb.FAIL, Verb.COMPLETE]
    assert shop.calls == [("charge", 5), ("ship", "Paris")]
    assert seen == [(Payment(RECEIPT, 5), ("Paris", 2))] * 3


def test_a_sync_handler_continues_in_the_same_way(app, queue, driver, shop):
    seen = []

    @app.job(queue=queue, backoff="0s")
    def order(cents: int) -> None:
        seen.append(step_sync("charge", shop.charge, cents))
        if len(seen) < 2:
            raise RuntimeError("broken")

    order.enqueue(5)

    assert run_until_done(driver) == [Verb.FAIL, Verb.COMPLETE]
    assert (shop.calls, seen) == ([("charge", 5)], [Payment(RECEIPT, 5)] * 2)


def test_a_step_that_raises_is_not_recorded(app, queue, driver):
    tries = []

    def flaky() -> int:
        tries.append(1)
        if len(tries) < 3:
            raise RuntimeError("broken")
        return len(tries)

    @app.job(queue=queue, backoff="0s")
    async def order() -> None:
        assert await step("flaky", flaky) == 3

    order.enqueue()

    assert run_until_done(driver) == [Verb.FAIL, Verb.FAIL, Verb.COMPLETE]


def test_a_name_that_is_used_again_gets_a_number(app, queue, driver):
    seen: list[list[int]] = []
    numbers = iter(range(100))

    @app.job(queue=queue, backoff="0s")
    async def poll() -> None:
        seen.append([await step("poll", functools.partial(next, numbers)) for _ in range(3)])
        if len(seen) < 2:
            raise RuntimeError("broken")

    sent = poll.enqueue()
    run_until_done(driver)

    assert seen == [[0, 1, 2]] * 2
    listed = app.backend.channel.request(steps.OF_MESSAGE, id=sent.id).steps
    assert [(one.name, one.outcome) for one in listed] == [
        ("poll", 0),
        ("poll#2", 1),
        ("poll#3", 2),
    ]


def test_changed_code_ignores_old_steps_and_runs_new_ones(app, queue, driver):
    calls: list[str] = []

    def call(name: str) -> str:
        calls.append(name)
        return name

    @app.job(queue=queue, backoff="0s")
    async def order() -> None:
        names = ["a", "old"] if current().attempts == 1 else ["new", "a"]
        for name in names:
            assert await step(name, call, name) == name
        if current().attempts == 1:
            raise RuntimeError("broken")

    order.enqueue()

    assert run_until_done(driver) == [Verb.FAIL, Verb.COMPLETE]
    assert calls == ["a", "old", "new"]


def test_steps_that_run_at_the_same_time_keep_their_own_outcomes(app, queue, driver):
    calls: list[int] = []

    async def fetch(page: int) -> int:
        await asyncio.sleep(0)
        calls.append(page)
        return page

    @app.job(queue=queue, backoff="0s")
    async def crawl() -> None:
        pages = await asyncio.gather(*(step("fetch", fetch, page) for page in range(4)))
        assert pages == [0, 1, 2, 3]
        if current().attempts == 1:
            raise RuntimeError("broken")

    crawl.enqueue()

    assert run_until_done(driver) == [Verb.FAIL, Verb.COMPLETE]
    assert sorted(calls) == [0, 1, 2, 3]


def test_a_worker_that_has_lost_its_lease_records_nothing(app, queue, driver):
    calls: list[int] = []

    @app.job(queue=queue)
    async def order() -> None:
        driver.act(JobAct(receipt=first.receipt, verb=Verb.RELEASE))
        [second] = driver.claim()
        assert second.lease_no == 2
        with pytest.raises(LeaseLost):
            await step("charge", calls.append, 1)

    sent = order.enqueue()
    [first] = driver.claim()
    driver.act_of(first)

    assert app.backend.channel.request(steps.OF_MESSAGE, id=sent.id).steps == []


def test_a_first_attempt_asks_for_no_steps(app, queue, driver, monkeypatch):
    @app.job(queue=queue)
    def order() -> None:
        step_sync("charge", lambda: 1)

    order.enqueue()
    [job] = driver.claim()
    asked = []
    channel = type(app.backend.channel)
    ask = channel.ask

    def note(self: Any, one: Any, tx: object = None) -> Any:
        asked.append(one)
        return ask(self, one, tx)

    monkeypatch.setattr(channel, "ask", note)
    driver.act_of(job)

    assert [one.operation for one in asked] == [steps.RECORD]


def bare() -> object:
    return {1, 2}


def typed() -> UUID:
    return "not a UUID"  # type: ignore[return-value]


def large() -> str:
    return "x" * 300_000


@pytest.mark.parametrize("function", [bare, typed, large])
def test_an_outcome_that_cannot_be_recorded_buries_the_job(app, queue, driver, function):
    """The step has run: a retry would repeat it."""

    @app.job(queue=queue)
    async def order() -> None:
        await step("charge", function)

    order.enqueue()
    [act] = driver.run_due()

    assert act.verb is Verb.BURY
    assert act.text is not None
    assert act.text.startswith("step 'charge' has run, but ")


def unfit() -> Callable[[], None]:
    raise AssertionError("not called")


async def later() -> int:
    raise AssertionError("not called")


def test_what_cannot_work_is_refused_before_it_runs(app, queue, driver):
    unfit_later: list[int] = []

    @app.job(queue=queue)
    def order() -> None:
        with pytest.raises(InvalidRequest, match="the outcome of step 'a' cannot be stored"):
            step_sync("a", unfit)
        with pytest.raises(InvalidRequest, match="step 'a' calls an async function"):
            _ = step_sync("a", later)
        for name in ("", "a#2", "x" * 289, "\x00"):
            with pytest.raises(InvalidRequest, match="the name of a step"):
                step_sync(name, unfit_later.append, 1)

    order.enqueue()

    assert [act.verb for act in driver.run_due()] == [Verb.COMPLETE]
    assert unfit_later == []


@pytest.mark.no_store("codec")
def test_an_outcome_of_another_type_is_refused():
    written = OutcomeType(int, "charge").write(5)

    with pytest.raises(InvalidRequest, match="step 'charge' was recorded with another type"):
        OutcomeType(UUID, "charge").read(written)


@pytest.mark.no_store("codec")
def test_an_outcome_without_an_annotation_is_plain_json():
    plain = OutcomeType(Any, "charge")

    assert plain.read(plain.write({"a": [1, None, "x"]})) == {"a": [1, None, "x"]}
    with pytest.raises(Bury, match="without a return annotation it must be plain JSON"):
        plain.write(RECEIPT)


@pytest.mark.no_store("context")
def test_outside_of_a_job_there_are_no_steps():
    with pytest.raises(InvalidRequest, match="no job is running here"):
        step_sync("a", dict)
