"""Single steps of a worker's pump."""

from __future__ import annotations

import pytest

from penstock import Penstock
from penstock.domain.errors import LeaseLost
from penstock.domain.message.lifecycle import State
from penstock.worker.lease_keeper import NOTICE_MS
from penstock.worker.processes.child import acts_for
from penstock.worker.processes.process_exit import ProcessExit
from tests.worker.driver import LEASE_MS


def test_jobs_are_claimed_for_the_free_slots_and_completed_with_the_next_turn(app, make_driver):
    done: list[int] = []

    @app.job(queue="mail")
    def count(n: int) -> None:
        done.append(n)

    sent = [count.enqueue(n) for n in range(5)]
    driver = make_driver(slots=3)

    driver.turn()
    assert len(driver.slots.waiting) == 3
    driver.run_all()
    driver.turn()

    assert done == [0, 1, 2]
    assert [driver.message(job.id) is None for job in sent] == [True, True, True, False, False]
    assert len(driver.slots.waiting) == 2  # they came in the same step


def test_an_iteration_reports_and_claims_in_one_call(app, make_driver):
    job = _nothing(app)
    job.enqueue_many([{}] * 4)
    driver = make_driver(slots=2)
    driver.turn()
    driver.run_all()
    before = driver.source.claims

    driver.turn()

    assert driver.source.claims == before + 1


def test_beyond_the_free_slots_as_many_are_claimed_as_prefetch_says(app, make_driver):
    _nothing(app).enqueue_many([{}] * 9)
    driver = make_driver(slots=2, prefetch=4)

    driver.turn()

    assert len(driver.slots.waiting) == 6


def test_a_worker_without_a_free_slot_claims_nothing(app, make_driver):
    _nothing(app).enqueue_many([{}] * 3)
    driver = make_driver(slots=1)
    driver.turn()
    driver.begin()
    before = driver.source.claims

    driver.pump.is_woken = True
    driver.turn()

    assert driver.source.claims == before


def test_a_worker_without_a_free_slot_sleeps_until_its_leases_are_due(app, clock, make_driver):
    _nothing(app).enqueue_many([{}] * 3)
    driver = make_driver(slots=1)
    driver.turn()
    driver.begin()
    clock.advance(seconds=5)

    assert driver.turn() > clock.now() + 1_000


def test_leases_are_kept_of_what_runs_and_of_what_is_in_line(app, clock, make_driver):
    job = _nothing(app)
    ids = [job.enqueue().id for _ in range(2)]
    driver = make_driver(slots=1, prefetch=1)
    driver.turn()
    running = driver.begin()

    for _ in range(20):
        clock.advance(ms=LEASE_MS // 3)
        driver.turn()
    driver.end(running)
    driver.run_all()
    driver.turn()

    assert [driver.message(id) for id in ids] == [None, None]


def test_without_an_iteration_in_time_the_lease_is_lost_and_the_result_is_not_reported(
    app, clock, make_driver
):
    sent = _nothing(app).enqueue()
    late, other = make_driver(slots=1), make_driver(slots=1)
    late.turn()
    held = late.begin()

    clock.advance(ms=LEASE_MS + 1)
    other.turn()
    late.turn()
    assert held.is_stopping
    late.end(held)
    late.turn()

    message = late.message(sent.id)
    assert message is not None
    assert message.state is State.LEASED  # of the other worker
    assert message.attempts == 2


@pytest.mark.parametrize("age_ms", [0, NOTICE_MS // 4, NOTICE_MS // 2, NOTICE_MS])
def test_a_job_that_an_operator_cancels_is_stopped_within_four_seconds(
    app, clock, make_driver, age_ms
):
    job = _nothing(app)
    job.enqueue()
    driver = make_driver(slots=2)
    driver.turn()
    driver.begin()
    clock.advance(ms=NOTICE_MS - age_ms)  # leases are checked when this one is that old
    driver.pump.is_woken = True
    sent = job.enqueue()
    driver.turn()
    held, stopped = driver.begin(), []
    held.stop_handler = lambda: stopped.append(clock.now())
    cancelled_at = clock.now()
    app.backend.broker.messages.cancel(sent.id, reason="no", is_running_ok=True).result()

    while not stopped:
        clock.advance(ms=driver.turn() - clock.now())

    assert stopped[0] - cancelled_at <= NOTICE_MS * 4 // 3
    assert held.is_stopping
    with pytest.raises(LeaseLost):
        held.extend()
    driver.end(held)  # a handler that cannot be stopped ends by itself
    driver.turn()
    assert held.place == -1, "its place is free again"
    [ending] = app.backend.broker.history.past(sent.id).result().endings
    assert (ending.outcome, ending.reason, ending.leased_by) == (State.CANCELLED, "no", "ada")


def test_a_job_cancelled_before_it_gets_a_slot_is_not_begun(app, clock, make_driver):
    ids = _nothing(app).enqueue_many([{}] * 2)
    driver = make_driver(slots=1, prefetch=1)
    driver.turn()
    driver.begin()
    app.backend.broker.messages.cancel(ids[1].id, reason=None, is_running_ok=True).result()

    clock.advance(ms=NOTICE_MS)
    driver.turn()

    [waiting] = driver.slots.waiting
    assert not waiting.begin(clock.now())


def test_an_unknown_kind_is_parked_and_run_by_a_worker_that_knows_it(app, clock, make_driver):
    sent = app.enqueue("from-the-future", {}, queue="mail")
    driver = make_driver(slots=1)
    driver.turn()
    driver.turn()

    parked = driver.message(sent.id)
    assert parked is not None
    assert (parked.state, parked.attempts) == (State.WAITING, 0)

    done = []
    app.job(queue="mail", kind="from-the-future")(lambda: done.append(1))
    clock.advance(minutes=1)
    driver.turn()
    driver.run_all()
    driver.turn()

    assert done == [1]
    assert driver.message(sent.id) is None


def test_arguments_that_do_not_fit_park_a_job_that_may_come_from_a_newer_program(app, make_driver):
    sent = app.enqueue("strict", {"number": "many"}, queue="mail")

    @app.job(queue="mail", kind="strict")
    def strict(number: int) -> None: ...

    driver = make_driver(slots=1)
    driver.turn()
    driver.turn()

    parked = driver.message(sent.id)
    assert parked is not None
    assert (parked.state, parked.attempts) == (State.WAITING, 0)


def test_draining_gives_back_what_has_not_begun_and_lets_finish_what_runs(app, make_driver):
    job = _nothing(app)
    first, second = job.enqueue(), job.enqueue()
    driver = make_driver(slots=1, prefetch=1)
    driver.turn()
    held = driver.begin()

    driver.pump.drain()
    driver.turn()
    assert held.is_stopping  # it may know
    assert not driver.pump.is_empty
    driver.end(held)
    driver.turn()

    assert driver.pump.is_empty
    assert driver.message(first.id) is None
    unspent = driver.message(second.id)
    assert unspent is not None
    assert (unspent.state, unspent.attempts) == (State.READY, 0)


def test_a_job_that_still_runs_when_draining_is_over_is_released_without_losing_an_attempt(
    app, make_driver
):
    sent = _nothing(app).enqueue()
    driver = make_driver(slots=1)
    driver.turn()
    held = driver.begin()

    driver.pump.drain()
    driver.turn()
    driver.pump.give_back()
    driver.turn()
    assert driver.pump.is_empty
    driver.end(held)
    driver.turn()

    message = driver.message(sent.id)
    assert message is not None
    assert (message.state, message.attempts) == (State.READY, 0)


def test_a_job_that_has_crashed_a_worker_before_runs_in_a_sandbox(app, make_driver):
    _nothing(app).enqueue()
    victim = make_driver(slots=1)
    victim.turn()
    victim.begin()
    _crash(victim)

    driver = make_driver(slots=1, has_sandbox=True)
    driver.turn()

    [held] = driver.slots.waiting
    assert held.crashes == 1
    assert held.runs_in.name == "SANDBOX"


def _nothing(app: Penstock):
    @app.job(queue="mail")
    def nothing() -> None: ...

    return nothing


def _crash(driver) -> None:
    acts = acts_for(
        driver.table.entries(), ProcessExit(-9, 0), now=driver.clock.now(), worker_id="ada"
    )
    assert driver.source.act(acts) == [None]
