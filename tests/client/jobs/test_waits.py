"""Durable sleeps and waits for signals: the job gives its lease and its slot back meanwhile."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from penstock import sleep, sleep_sync, step, wait_event, wait_event_sync
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from tests.edge.api import a_name


class Approval(msgspec.Struct):
    by: str


def test_a_sleep_gives_the_lease_back_and_costs_no_attempt(app, queue, driver, clock):
    seen: list[str] = []

    @app.job(queue=queue, attempts=1)
    async def remind() -> None:
        await step("begin", seen.append, "begin")
        try:
            await sleep("3d")
        except Exception:
            seen.append("swallowed")
        seen.append("end")

    sent = remind.enqueue()
    [act] = driver.run_due()
    assert (act.verb, act.delay_ms) == (Verb.SNOOZE, 3 * DAY)
    assert app.jobs.get(sent).state is State.WAITING

    clock.advance(days=3, ms=-1)
    assert driver.claim() == []
    clock.advance(ms=1)
    assert [act.verb for act in driver.run_due()] == [Verb.COMPLETE]
    assert seen == ["begin", "end"]


def test_a_job_that_wakes_early_sleeps_on(app, queue, driver, clock):
    @app.job(queue=queue)
    def remind() -> None:
        sleep_sync("2h")
        sleep_sync("1h")

    sent = remind.enqueue()
    driver.run_due()
    clock.advance(minutes=30)
    app.jobs.reschedule(sent, delay="0s")
    [act] = driver.run_due()
    assert act.delay_ms == DAY // 16  # the rest of the first sleep

    clock.advance(minutes=90)
    [act] = driver.run_due()
    assert act.delay_ms == DAY // 24
    clock.advance(hours=1)
    assert [act.verb for act in driver.run_due()] == [Verb.COMPLETE]


def test_a_signal_continues_the_job_that_waits_for_it(app, queue, driver):
    name, seen = a_name("approved"), []

    @app.job(queue=queue)
    async def order() -> None:
        seen.append(await wait_event(name, timeout="7d", type=Approval))

    order.enqueue()
    [act] = driver.run_due()
    assert (act.verb, act.signal) == (Verb.SNOOZE, name)
    assert driver.claim() == []

    sent = app.signal(name, Approval("ada"))

    assert (sent.ended_waits, sent.is_duplicate) == (1, False)
    assert [act.verb for act in driver.run_due()] == [Verb.COMPLETE]
    assert seen == [Approval("ada")]
    assert app.signal(name, Approval("bob")).body == {"by": "ada"}


def test_a_signal_that_came_first_is_found(app, queue, driver):
    name, seen = a_name("approved"), []

    @app.job(queue=queue)
    def order() -> None:
        seen.append(wait_event_sync(name))

    app.signal(name, keep="1d")
    order.enqueue()

    assert [act.verb for act in driver.run_due()] == [Verb.COMPLETE]
    assert seen == [None]


def test_a_timeout_is_raised_in_this_attempt_and_in_later_ones(app, queue, driver, clock):
    name, tries = a_name("approved"), []

    @app.job(queue=queue, backoff="0s")
    def order() -> None:
        with pytest.raises(TimeoutError, match="did not arrive within 1h"):
            wait_event_sync(name, timeout="1h")
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("broken")

    order.enqueue()
    driver.run_due()
    clock.advance(hours=1)
    assert [act.verb for act in driver.run_due()] == [Verb.FAIL]
    app.signal(name)

    assert [act.verb for act in driver.run_due()] == [Verb.COMPLETE]


def test_a_job_in_a_task_group_may_wait(app, queue, driver):
    name, seen = a_name("approved"), []

    async def wait() -> None:
        seen.append(await wait_event(name))

    @app.job(queue=queue)
    async def order() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(wait())

    order.enqueue()
    assert [act.verb for act in driver.run_due()] == [Verb.SNOOZE]

    app.signal(name, 17)
    assert [act.verb for act in driver.run_due()] == [Verb.COMPLETE]
    assert seen == [17]


def test_a_handler_of_events_may_wait(app, driver, clock):
    topic, seen = a_name("orders"), []

    @app.subscribe(topic, attempts=1)
    def confirm(order: int) -> None:
        sleep_sync("1h")
        seen.append(order)

    app.job_source()
    app.publish(topic, 17)
    driver.queue = f"{topic}.confirm"
    assert [act.verb for act in driver.run_due()] == [Verb.SNOOZE]

    clock.advance(hours=1)
    assert [act.verb for act in driver.run_due()] == [Verb.COMPLETE]
    assert seen == [17]


def test_bad_waits_are_refused(app, queue, driver):
    @app.job(queue=queue)
    def order() -> None:
        for call in (
            lambda: sleep_sync("soon"),
            lambda: sleep_sync("9000d"),
            lambda: wait_event_sync(""),
            lambda: wait_event_sync("x" * 257),
            lambda: wait_event_sync("a", timeout="-1s"),
        ):
            with pytest.raises(InvalidRequest):
                call()

    order.enqueue()

    assert [act.verb for act in driver.run_due()] == [Verb.COMPLETE]
    with pytest.raises(InvalidRequest, match="cannot be stored as JSON"):
        app.signal("a", object())
