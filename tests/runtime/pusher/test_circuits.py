"""Pushing through circuits: what is held, what is tried, and what it costs: no attempts."""

from __future__ import annotations

from typing import cast

from penstock.domain.circuit.circuit import CircuitState, circuit_hash
from penstock.domain.circuit.settings import BreakerTask
from penstock.domain.message.lifecycle import State
from penstock.ports.store import Session
from penstock.ports.wakeups import Wakeups
from penstock.services.circuits import changes as circuit_changes
from tests.runtime.pusher.rig import RETRY_MS, Rig

PATTERN = "/(.*)"
HASH = circuit_hash(PATTERN)


def state(rig: Rig) -> CircuitState:
    return rig.circuits.status(HASH).result()


def test_failures_open_the_circuit_and_the_queue_of_the_last_straw_is_held(rig: Rig):
    rig.breaker(min_queue_sample_count=2)
    first, second = rig.queue("first"), rig.queue("second")
    rig.deliver(first, "/1")
    rig.step()
    rig.answer(500)
    assert state(rig) is CircuitState.CLOSED
    rig.deliver(second, "/2")
    rig.step()

    rig.answer(500)

    assert state(rig) is CircuitState.OPEN
    found = rig.desk.read(lambda s: [s.queues.get(q.queue_no).held_by for q in (first, second)])
    assert found == [None, HASH]


def test_what_meets_an_open_circuit_is_not_sent_and_its_attempts_are_not_spent(rig: Rig):
    rig.breaker()
    rig.circuits.force_open(HASH).result()
    queue = rig.queue()
    message_id = rig.deliver(queue, "/a")

    for _ in range(5):
        rig.step()

    message = rig.message(message_id)
    assert rig.sent() == []
    assert (message.state, message.attempts, message.failures) == (State.READY, 0, 0)
    assert len(rig.desk.attempts(message_id)) == 1, "it was looked at once, and then held"
    assert rig.desk.read(lambda s: s.queues.get(queue.queue_no)).held_by == HASH


def test_a_queue_that_is_let_go_goes_on_where_it_stopped(rig: Rig):
    rig.breaker()
    rig.circuits.force_open(HASH).result()
    queue = rig.queue()
    rig.deliver(queue, "/a")
    rig.step()
    rig.circuits.close(HASH).result()
    rig.step()
    assert rig.sent() == [], "closed, but still in the line of those to be let go"

    rig.circuits.let_next_go(now=rig.desk.now).result()
    rig.step()

    assert rig.sent() == ["/a"]


def test_while_nothing_is_checked_an_open_circuit_keeps_nobody_back(rig: Rig):
    rig.breaker(circuit_check_enabled=False)
    rig.circuits.force_open(HASH).result()
    rig.deliver(rig.queue(), "/a")

    rig.step()

    assert rig.sent() == ["/a"]


def test_a_single_probe_means_one_request_whatever_the_number_of_queues(rig: Rig):
    rig.breaker(single_probe=True)
    rig.circuits.force_open(HASH).result()
    rig.circuits.close(HASH).result()
    rig.breaker(min_queue_sample_count=1, single_probe=True)
    rig.deliver(rig.queue("bad"), "/bad")
    rig.step()
    rig.answer(500)
    rig.circuits.half_open_all(now=rig.desk.now).result()
    for number in range(5):
        rig.deliver(rig.queue(f"q{number}"), f"/{number}")

    rig.step()
    rig.step()

    assert len(rig.open()) == 1
    rig.answer(200)
    assert state(rig) is CircuitState.CLOSED


def test_a_probe_that_is_broken_off_at_a_stop_decides_nothing_and_frees_its_place(rig: Rig):
    rig.breaker(min_queue_sample_count=1, single_probe=True)
    rig.deliver(rig.queue("bad"), "/bad")
    rig.step()
    rig.answer(500)
    rig.circuits.half_open_all(now=rig.desk.now).result()
    queue = rig.queue("probe")
    rig.deliver(queue, "/probe")
    rig.step()

    rig.sender.close()
    rig.step()

    assert state(rig) is CircuitState.HALF_OPEN
    assert rig.open() == ["/probe"], "somebody else may try"


def test_an_expired_request_decides_nothing_about_a_half_open_circuit(rig: Rig):
    rig.breaker(min_queue_sample_count=1)
    rig.deliver(rig.queue("bad"), "/bad")
    rig.step()
    rig.answer(500)
    rig.circuits.half_open_all(now=rig.desk.now).result()
    rig.deliver(rig.queue("old"), "/old", x_queue_expire_after="0")
    rig.clock.advance(ms=1)

    rig.step()

    assert state(rig) is CircuitState.HALF_OPEN
    assert rig.sent() == ["/bad"]


def test_an_expired_request_waits_for_an_open_circuit_like_others(rig: Rig):
    """The seed asks for the circuit first and looks at the age of what may go."""
    rig.breaker(min_queue_sample_count=1)
    rig.deliver(rig.queue("bad"), "/bad")
    rig.step()
    rig.answer(500)
    queue = rig.queue("old")
    old = rig.deliver(queue, "/old", x_queue_expire_after="0")
    rig.clock.advance(ms=1)

    rig.step()
    assert rig.message(old).attempts == 0
    assert rig.desk.read(lambda s: s.queues.get(queue.queue_no)).held_by is not None

    rig.circuits.close(circuit_hash("/(.*)")).result()
    for _ in range(2):
        rig.circuits.let_next_go(now=rig.clock.advance(seconds=10)).result()
    rig.step()
    assert [ending.reason for ending in rig.desk.endings()] == ["expired"]
    assert "/old" not in rig.sent()


def test_an_expired_request_leaves_a_single_probe_to_the_next(rig: Rig):
    rig.breaker(min_queue_sample_count=1, single_probe=True)
    rig.deliver(rig.queue("bad"), "/bad")
    rig.step()
    rig.answer(500)
    rig.circuits.half_open_all(now=rig.desk.now).result()
    queue = rig.queue("old")
    rig.deliver(queue, "/old", x_queue_expire_after="0")
    rig.deliver(queue, "/new")
    rig.clock.advance(ms=1)

    for _ in range(3):
        rig.step()

    assert rig.open() == ["/new"]


def test_a_slow_success_is_done_with_but_counts_as_a_failure_if_so_set(rig: Rig):
    rig.breaker(min_queue_sample_count=1, slow_call_ms=100)
    rig.deliver(rig.queue(), "/a")
    rig.step()

    rig.answer(200, took_ms=100)

    assert state(rig) is CircuitState.OPEN
    assert [ending.outcome for ending in rig.desk.endings()] == [State.DONE]


def test_the_same_request_failing_again_and_again_counts_once(rig: Rig):
    rig.breaker(min_queue_sample_count=2)
    rig.deliver(rig.queue(), "/a")

    for _ in range(5):
        rig.step()
        rig.answer(500)
        rig.clock.advance(ms=RETRY_MS)

    assert state(rig) is CircuitState.CLOSED


def test_native_deliveries_to_one_uri_count_each_for_itself(rig: Rig):
    """50 queues that fail at one endpoint are 50 samples, not one."""
    rig.breaker(min_queue_sample_count=50)
    for number in range(50):
        rig.deliver(rig.queue(f"q{number}"), "/a", unique_id=None)
    rig.step()
    assert len(rig.open()) == 50

    while rig.open():
        assert state(rig) is CircuitState.CLOSED
        rig.answer(500)

    assert state(rig) is CircuitState.OPEN


def test_a_request_without_a_route_says_nothing_about_any_circuit(rig: Rig):
    rig.rule("/known", url="http://backend/")
    rig.breaker(min_queue_sample_count=1)
    rig.deliver(rig.queue(), "/unknown")

    rig.step()

    assert rig.circuits.all().result() == {}


PROBING = {
    "min_queue_sample_count": 1,
    "open_to_half_open": BreakerTask(True, 300),
    "unlock_probes": BreakerTask(True, 300),
}


def held(rig: Rig, count: int) -> None:
    """So many queues whose heads have failed and wait for long, and which the circuit holds."""
    cast(Wakeups, rig.desk.store).listen(rig.pusher.heard)
    rig.rule(PATTERN, url="http://backend/$1", retryIntervals=[60])
    rig.breaker(**PROBING)
    queues = [rig.queue(f"q{number}") for number in range(count)]
    for queue in queues:
        rig.deliver(queue, f"/{queue.name}")
    rig.step()
    while rig.open():
        rig.answer(500)
    nos = [queue.queue_no for queue in queues]
    rig.desk.write(lambda s: hold(s, nos, rig.desk.now))


def hold(session: Session, queue_nos: list[int], now: int) -> None:
    session.circuits.to_change([HASH])
    circuit_changes.hold(session, {HASH: queue_nos}, now=now)


def tick(rig: Rig) -> None:
    rig.circuits.half_open_all(now=rig.desk.now).result()
    rig.circuits.let_probes_go(now=rig.desk.now).result()
    rig.step()


def test_the_head_of_a_queue_that_probes_is_tried_at_once_and_not_after_its_back_off(rig: Rig):
    held(rig, 1)

    tick(rig)
    assert rig.open() == ["/q0"]
    rig.answer(200)

    assert state(rig) is CircuitState.CLOSED


def test_a_queue_that_has_probed_in_vain_probes_again_without_its_back_off(rig: Rig):
    held(rig, 1)
    tick(rig)
    rig.answer(500)
    assert state(rig) is CircuitState.OPEN

    rig.clock.advance(ms=300)
    tick(rig)

    assert rig.open() == ["/q0"]


def test_an_endpoint_that_stays_down_is_asked_once_per_tick(rig: Rig):
    """However many queues wait, and although their back-offs end in the same instant."""
    held(rig, 30)
    before = len(rig.sent())

    for number in range(40):
        rig.clock.advance(ms=300)
        tick(rig)
        assert len(rig.sent()) == before + number + 1
        rig.answer(500)


def test_while_no_probe_has_answered_a_tick_lets_one_more_queue_try(rig: Rig):
    held(rig, 30)

    for number in range(5):
        rig.clock.advance(ms=300)
        tick(rig)
        assert len(rig.open()) == number + 1


def test_a_queue_that_leaves_the_line_is_tried_at_once(rig: Rig):
    held(rig, 2)
    rig.circuits.close(HASH).result()
    rig.step()
    assert rig.open() == []

    rig.circuits.let_next_go(now=rig.desk.now).result()
    rig.step()

    assert rig.open() == ["/q0"]
