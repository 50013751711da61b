"""Jobs that name a route: the worker asks its circuit before it runs them, on every store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, pairwise
from typing import Any

import pytest

from penstock import Bury, Cancel, Penstock, Snooze
from penstock.domain.circuit.circuit import CircuitState, circuit_hash
from penstock.domain.errors import Forbidden, InvalidRequest, StoreUnavailable
from penstock.domain.message.lifecycle import Message, State
from penstock.wiring.broker import Broker
from penstock.worker.claimed_job import StopReason
from tests.clocks import ManualClock
from tests.edge.api import a_name
from tests.worker.driver import PumpDriver

pytestmark = pytest.mark.environments("worker")

OPEN, HALF, CLOSED = CircuitState.OPEN, CircuitState.HALF_OPEN, CircuitState.CLOSED
ON: dict[str, Any] = {
    "circuit_check_enabled": True,
    "statistics_update_enabled": True,
    "min_queue_sample_count": 3,
    "open_to_half_open": {"interval_ms": 1},
}
_minutes = count(10)
OFF = {"circuit_check_enabled": False, "statistics_update_enabled": False}


class Backend:
    """The backend that jobs of a route call."""

    def __init__(self) -> None:
        self.is_down = False
        self.asked: list[int] = []

    def ask(self, n: int) -> None:
        self.asked.append(n)
        if self.is_down:
            raise ConnectionError("down")


class Circuits:
    """A job with a route, a worker that the test steps, and its circuit."""

    def __init__(self, app: Penstock, clock: ManualClock, queue: str, broker: Broker) -> None:
        self.app, self.clock, self.broker = app, clock, broker
        self.queue, self.route = queue, f"route-{queue}"
        self.backend = Backend()

        @app.job(queue=queue, route=self.route, attempts=3, backoff="1s")
        def pay(n: int) -> None:
            self.backend.ask(n)

        self.pay = pay
        self.driver = PumpDriver(app, clock, queues=(queue,), slots=10)

    @property
    def state(self) -> CircuitState:
        return self.broker.circuits.status(circuit_hash(self.route)).result()

    def half_open(self, *, seconds: int | None = None) -> None:
        # Tests share a database and its duties, so each has its own time.
        now = self.clock.advance(seconds=seconds or 60 * next(_minutes))
        assert self.broker.circuits.half_open_all(now=now).result().done

    def work(self) -> None:
        """Step until nothing is due."""
        self.driver.pump.is_woken = True
        for _ in range(4):
            self.driver.turn()
            self.driver.run_all()
        self.driver.turn()

    def break_down(self) -> None:
        """Let three jobs fail, which is enough to open the circuit."""
        self.backend.is_down = True
        self.pay.enqueue_many([{"n": n} for n in range(3)])
        self.driver.pump.is_woken = True
        self.driver.turn()
        self.driver.run_all()
        self.driver.turn()

    def message(self, message_id: str) -> Message | None:
        return self.broker.messages.find(message_id).result()


@pytest.fixture
def circuits(app: Penstock, clock: ManualClock, queue: str, broker: Broker) -> Iterator[Circuits]:
    app.breaker(**ON)
    made = Circuits(app, clock, queue, broker)
    yield made
    made.driver.close()
    broker.circuits.breaker.reset().result()


def test_when_too_many_jobs_of_a_route_fail_the_others_are_held_and_lose_no_attempt(circuits):
    circuits.break_down()
    assert (circuits.state, circuits.backend.asked) == (OPEN, [0, 1, 2])

    sent = [circuits.pay.enqueue(n).id for n in range(3, 6)]
    circuits.clock.advance(seconds=10)
    circuits.work()

    assert circuits.backend.asked == [0, 1, 2], "not even those that failed are tried again"
    for found in map(circuits.message, sent):
        assert (found.state, found.attempts, found.failures) == (State.WAITING, 0, 0)
        assert circuits.route in found.last_error
        assert found.due_at == circuits.clock.now() + 120_000, "no worker tries it in between"


def test_half_open_one_of_them_is_tried_and_when_it_works_all_run(circuits):
    circuits.break_down()
    circuits.half_open()
    circuits.driver.pump.is_woken = True
    circuits.driver.turn()

    assert len(circuits.driver.slots.waiting) == 1, "the others wait for what becomes of it"
    circuits.backend.is_down = False
    circuits.work()
    assert (circuits.state, len(circuits.backend.asked)) == (CLOSED, 4)

    circuits.clock.advance(seconds=2)
    circuits.work()
    assert sorted(circuits.backend.asked[3:]) == [0, 1, 2]


def test_when_the_one_that_is_tried_fails_the_circuit_opens_again(circuits):
    circuits.break_down()
    circuits.half_open()
    circuits.work()

    assert (circuits.state, len(circuits.backend.asked)) == (OPEN, 4)
    circuits.clock.advance(seconds=10)
    circuits.work()
    assert len(circuits.backend.asked) == 4


def test_a_job_that_was_tried_and_failed_loses_no_attempt_and_leaves_the_next_try_to_others(
    circuits,
):
    circuits.break_down()
    tried = []
    for number in range(6):  # more often than they have attempts
        circuits.half_open(seconds=120 if number else None)
        circuits.work()
        tried.append(circuits.backend.asked[-1])
        circuits.clock.advance(seconds=2)
        circuits.work()

    assert len(circuits.backend.asked) == 3 + 6
    assert all(one != another for one, another in pairwise(tried))
    circuits.backend.is_down = False
    circuits.half_open()
    for _ in range(3):
        circuits.work()
        circuits.clock.advance(minutes=3)
    assert circuits.state is CLOSED
    assert sorted(circuits.backend.asked[9:]) == [0, 1, 2], "none of them is dead"


def test_two_workers_try_one_job_between_them(circuits):
    circuits.break_down()
    circuits.half_open()
    other = PumpDriver(circuits.app, circuits.clock, queues=(circuits.queue,), slots=1)
    other.turn()
    circuits.driver.pump.is_woken = True
    circuits.driver.turn()

    assert (len(other.slots.waiting), len(circuits.driver.slots.waiting)) == (1, 0)
    other.close()


def test_a_worker_that_ends_gives_its_try_back(circuits):
    circuits.break_down()
    circuits.half_open()
    circuits.driver.pump.is_woken = True
    circuits.driver.turn()

    circuits.driver.pump.drain()
    circuits.driver.turn()

    other = PumpDriver(circuits.app, circuits.clock, queues=(circuits.queue,))
    other.turn()
    assert len(other.slots.waiting) == 1
    assert circuits.state is HALF
    other.close()


def test_a_try_whose_lease_is_lost_is_left_to_the_next(circuits):
    circuits.break_down()
    circuits.half_open()
    circuits.driver.pump.is_woken = True
    circuits.driver.turn()
    held = circuits.driver.begin()
    held.stop(StopReason.LEASE_LOST)
    circuits.driver.end(held)
    circuits.driver.pump.is_woken = True
    circuits.driver.turn()

    circuits.clock.advance(seconds=2)
    circuits.driver.pump.is_woken = True
    circuits.driver.turn()

    assert len(circuits.driver.slots.waiting) == 1
    assert circuits.state is HALF


def test_circuits_are_asked_once_for_all_that_come_with_a_claim(circuits):
    app, queue = circuits.app, circuits.queue
    app.enqueue("pay", {"n": 1}, queue=queue, route="another")
    circuits.pay.enqueue_many([{"n": n} for n in range(4)])

    circuits.driver.turn()
    circuits.driver.run_all()
    circuits.driver.turn()

    assert list(map(sorted, circuits.driver.source.asked)) == [sorted(["another", circuits.route])]
    assert circuits.driver.source.reports == 1


def test_jobs_without_a_route_need_no_permit(circuits):
    circuits.app.enqueue("pay", {"n": 1}, queue=circuits.queue, route=None)

    circuits.work()

    assert circuits.backend.asked == [1]
    assert (circuits.driver.source.asked, circuits.driver.source.reports) == ([], 0)


def test_while_no_circuit_is_watched_they_are_asked_once_a_second_and_get_no_outcomes(circuits):
    circuits.app.breaker(**OFF)
    circuits.clock.advance(seconds=1)
    circuits.pay.enqueue(1)
    circuits.work()
    circuits.pay.enqueue(2)
    circuits.work()
    assert len(circuits.driver.source.asked) == 1

    circuits.clock.advance(seconds=1)
    circuits.pay.enqueue(3)
    circuits.work()

    assert len(circuits.driver.source.asked) == 2
    assert circuits.driver.source.reports == 0
    assert circuits.backend.asked == [1, 2, 3]


def test_settings_that_another_process_changes_are_taken_within_a_second(circuits, url, clock):
    circuits.break_down()
    other = Penstock(url, clock=clock)
    other.breaker(**OFF)
    other.close()
    circuits.clock.advance(seconds=60)
    if url.startswith("http"):
        circuits.broker.circuits.refresh()

    circuits.pay.enqueue(9)
    circuits.work()

    assert 9 in circuits.backend.asked


@pytest.mark.parametrize("outcome", [Snooze("1h"), Cancel("no"), Bury("no such card")])
def test_an_outcome_that_the_handler_chose_does_not_count_as_a_failure_of_the_route(
    circuits, outcome
):
    @circuits.app.job(queue=circuits.queue, route=circuits.route, kind=a_name())
    def decide() -> object:
        return outcome

    decide.enqueue_many([{}] * 5)
    circuits.work()

    found = circuits.broker.circuits.find(circuit_hash(circuits.route)).result()
    assert found is None or found.circuit.fail_ratio == 0
    assert circuits.state is CLOSED


def test_a_route_is_not_tried_while_its_circuit_state_is_unavailable(circuits):
    sent = circuits.pay.enqueue(1)
    circuits.driver.source.no_answer = StoreUnavailable("gone")
    circuits.work()
    assert circuits.backend.asked == []
    assert circuits.message(sent.id).attempts == 0

    circuits.driver.source.no_answer = None
    circuits.clock.advance(seconds=1)
    circuits.work()
    assert circuits.backend.asked == [1]


def test_a_server_that_keeps_no_circuits_for_this_key_does_not_stop_its_jobs(circuits):
    circuits.driver.source.no_answer = Forbidden("not you")
    circuits.pay.enqueue(1)

    circuits.work()

    assert circuits.backend.asked == [1]


def test_an_outcome_that_could_not_be_reported_is_reported_later(circuits, monkeypatch):
    whole: Callable[..., None] = circuits.driver.source.report
    fails = [StoreUnavailable("gone")]

    def report(reports):
        if fails:
            raise fails.pop()
        whole(reports)

    monkeypatch.setattr(circuits.driver.source, "report", report)
    circuits.break_down()
    assert circuits.state is CLOSED

    circuits.clock.advance(ms=1)
    circuits.pay.enqueue(7)
    circuits.work()
    assert circuits.state is OPEN


def test_invalid_settings_are_refused(circuits):
    with pytest.raises(InvalidRequest, match="error_threshold_percentage"):
        circuits.app.breaker(error_threshold_percentage=101)
    with pytest.raises(InvalidRequest):
        circuits.app.breaker(unknown=1)
    with pytest.raises(InvalidRequest, match="the same for all circuits"):
        circuits.app.breaker(circuits.route, unlock_growth=2)


def test_a_route_has_settings_of_its_own(circuits):
    found = circuits.app.breaker(circuits.route, min_queue_sample_count=4)
    assert found.min_queue_sample_count == 4
    circuits.break_down()
    assert circuits.state is CLOSED, "three failures are not enough for this one"

    circuits.pay.enqueue(3)
    circuits.work()

    assert circuits.state is OPEN
