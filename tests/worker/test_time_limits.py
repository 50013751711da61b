"""Time limits of jobs, in single steps of a worker's pump."""

from __future__ import annotations

import pytest

from penstock.domain.errors import StoreUnavailable
from penstock.domain.message.lifecycle import State
from penstock.worker.claimed_job import StopReason
from tests.worker.driver import LEASE_MS


@pytest.fixture
def backend() -> str:
    """Time limits are not in the store; test_pump and test_worker run on both."""
    return "sqlite"


def test_a_job_past_its_time_limit_is_dead_as_timed_out_and_not_tried_again(
    app, clock, make_driver
):
    @app.job(queue="mail", timeout="2s")
    def long() -> None: ...

    sent = long.enqueue()
    driver = make_driver(slots=1)
    driver.turn()
    held = driver.begin()

    due = driver.turn()
    assert due == clock.now() + 2_000
    clock.advance(seconds=2)
    driver.turn()
    assert held.is_stopping
    driver.end(held)
    driver.turn()

    message = driver.message(sent.id)
    assert message is not None
    assert (message.state, message.reason) == (State.DEAD, "timed_out")


def test_after_a_time_out_that_is_tried_again_the_jobs_own_back_off_counts(app, clock, make_driver):
    @app.job(queue="mail", timeout="5s", retries_timeouts=True, backoff="10m")
    def long() -> None: ...

    sent = long.enqueue()
    driver = make_driver(slots=1)
    driver.turn()
    held = driver.begin()

    clock.advance(seconds=5)
    driver.turn()
    driver.end(held)
    driver.turn()

    message = driver.message(sent.id)
    assert message is not None
    assert (message.state, message.due_at) == (State.WAITING, clock.now() + 600_000)
    assert message.last_error == "stopped at its time limit of 5s"


def test_a_time_limit_counts_from_the_start_and_not_from_the_claim(app, clock, make_driver):
    @app.job(queue="mail", timeout="5s")
    def long() -> None: ...

    sent = long.enqueue()
    driver, other = make_driver(slots=1), make_driver(slots=1)
    driver.turn()

    clock.advance(seconds=4)
    held = driver.begin()
    driver.turn()
    clock.advance(seconds=4)
    driver.turn()
    other.turn()  # makes what has become due claimable in the store
    assert not held.is_stopping
    driver.end(held)
    driver.turn()

    assert driver.message(sent.id) is None


@pytest.mark.parametrize("is_quick", [True, False])
def test_a_job_that_does_not_stop_at_its_time_limit_is_flagged_before_its_lease_runs_out(
    app, clock, make_driver, is_quick
):
    @app.job(queue="mail", timeout="5s")
    def deaf() -> None: ...

    sent = deaf.enqueue()
    driver, other = make_driver(slots=1, has_sandbox=True), make_driver(slots=1)
    driver.turn()
    held = driver.begin()
    clock.advance(seconds=5)
    driver.turn()
    message = driver.message(sent.id)
    assert message is not None
    assert message.state is State.LEASED, "it may clean up first"

    if not is_quick:
        while clock.now() < message.due_at:
            clock.advance(ms=min(LEASE_MS // 6, message.due_at - clock.now()))
            driver.turn()
            other.turn()
        assert held.stop_reason is StopReason.LEASE_LOST, "it is reported once"
    driver.end(held)
    driver.turn()
    driver.turn()

    assert not driver.pump.has_jobs
    dead = driver.message(sent.id)
    assert dead is not None
    assert (dead.state, dead.reason, dead.attempts) == (State.DEAD, "timed_out", 1)
    assert dead.last_error == "stopped at its time limit of 5s"


def test_a_worker_that_is_gone_with_a_job_past_its_time_limit_has_it_run_again(
    app, clock, make_driver
):
    @app.job(queue="mail", timeout="5s")
    def long() -> None: ...

    sent = long.enqueue()
    gone, other = make_driver(slots=1), make_driver(slots=1)
    gone.turn()
    gone.begin()
    clock.advance(ms=LEASE_MS)

    other.turn()
    other.run_all()
    other.turn()

    assert other.message(sent.id) is None


def test_when_it_began_is_reported_again_if_the_store_did_not_hear_it(app, clock, make_driver):
    @app.job(queue="mail", timeout="5s")
    def long() -> None: ...

    sent = long.enqueue()
    driver = make_driver(slots=1, lease_ms=3_000)
    driver.turn()
    clock.advance(seconds=2)
    held = driver.begin()
    held.extend(progress="1")
    driver.source.error = StoreUnavailable("the disk is full")
    again_at = driver.turn()
    driver.source.error = None
    clock.advance(ms=again_at - clock.now())
    driver.turn()
    message = driver.message(sent.id)
    assert message is not None
    assert message.progress == "1"

    for _ in range(4):  # past the time limit, if it is counted from the claim
        clock.advance(seconds=1)
        driver.turn()

    assert held.stop_reason is None
    driver.end(held)
    driver.turn()
    assert driver.message(sent.id) is None


def test_a_job_that_cannot_begin_within_half_its_time_limit_is_given_back_unspent(
    app, clock, make_driver
):
    @app.job(queue="mail", timeout="3s")
    def short() -> None: ...

    sent = short.enqueue()
    driver = make_driver(slots=1)
    assert driver.turn() <= clock.now() + 1_500
    [held] = driver.slots.waiting

    clock.advance(ms=1_500)
    driver.pump.is_draining = True  # otherwise it would claim the job again
    driver.turn()

    message = driver.message(sent.id)
    assert message is not None
    assert (message.state, message.attempts) == (State.READY, 0)
    assert not driver.slots.waiting
    assert not held.begin(clock.now())


def test_a_job_that_waits_in_its_slot_for_a_sandbox_is_given_back_later_and_in_its_old_place(
    app, clock, make_driver
):
    @app.job(queue="mail", timeout="3s")
    def short() -> None: ...

    sent, younger = short.enqueue(), short.enqueue()
    driver = make_driver(slots=1, has_sandbox=True)
    driver.turn()
    held = driver.slots.waiting.popleft()
    held.has_slot = True
    freed = []
    held.stop_handler = lambda: freed.append(held)

    clock.advance(ms=9_000)
    driver.turn()
    assert held.stop_reason is None

    clock.advance(ms=1_000)
    driver.pump.is_draining = True
    driver.turn()

    assert freed == [held]
    waiting = [driver.message(sent.id), driver.message(younger.id)]
    assert [(m.state, m.attempts) for m in waiting] == [(State.READY, 0)] * 2
    assert waiting[0].order_no < waiting[1].order_no


def test_a_job_that_does_not_stop_at_its_time_limit_does_not_keep_a_worker_from_ending(
    app, clock, make_driver
):
    @app.job(queue="mail", timeout="5s")
    async def blocks() -> None: ...

    sent = blocks.enqueue()
    driver = make_driver(slots=1)
    driver.turn()
    driver.begin()
    clock.advance(seconds=5)
    driver.turn()

    driver.pump.drain()
    driver.turn()
    assert not driver.pump.is_empty
    driver.pump.give_back()
    driver.turn()

    assert driver.pump.is_empty
    message = driver.message(sent.id)
    assert message is not None
    assert (message.state, message.reason) == (State.DEAD, "timed_out")


@pytest.mark.parametrize(
    ("timeout", "is_async", "way"),
    [
        (None, False, "THREAD"),
        ("1s", False, "SANDBOX"),
        (None, True, "EVENT_LOOP"),
        ("1s", True, "EVENT_LOOP"),
    ],
)
def test_a_job_runs_where_it_can_be_stopped(app, make_driver, timeout, is_async, way):
    async def wait() -> None: ...

    def work() -> None: ...

    app.job(queue="mail", timeout=timeout)(wait if is_async else work).enqueue()
    driver = make_driver(slots=1, has_sandbox=True)
    driver.turn()

    assert [held.runs_in.name for held in driver.slots.waiting] == [way]
