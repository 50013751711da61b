"""Pushing through circuits: what is held and what is tried, without spending attempts."""

from __future__ import annotations

from typing import cast

import pytest

from penstock.domain.circuit.circuit import CircuitState, circuit_hash
from penstock.domain.circuit.settings import BreakerTask
from penstock.domain.message.lifecycle import State
from penstock.ports.store import Session
from penstock.ports.ticket import Wakeups
from penstock.services.circuits import transitions
from tests.runtime.pusher.driver import RETRY_MS, PusherDriver

PATTERN = "/(.*)"
HASH = circuit_hash(PATTERN)


@pytest.fixture
def backend() -> str:
    """What a pusher does is not in the store; the circuits of tests/services are tested on both."""
    return "sqlite"


def state(driver: PusherDriver) -> CircuitState:
    return driver.circuits.status(HASH).result()


def test_failures_open_the_circuit_and_the_queue_of_the_last_failure_is_held(driver: PusherDriver):
    driver.breaker(min_queue_sample_count=2)
    first, second = driver.queue("first"), driver.queue("second")
    driver.deliver(first, "/1")
    driver.step()
    driver.answer(500)
    assert state(driver) is CircuitState.CLOSED
    driver.deliver(second, "/2")
    driver.step()

    driver.answer(500)

    assert state(driver) is CircuitState.OPEN
    found = driver.store_driver.read(
        lambda s: [s.queues.get(q.queue_no).held_by for q in (first, second)]
    )
    assert found == [None, HASH]


def test_a_delivery_to_an_open_circuit_is_not_sent_and_spends_no_attempt(
    driver: PusherDriver,
):
    driver.breaker()
    driver.circuits.force_open(HASH).result()
    queue = driver.queue()
    message_id = driver.deliver(queue, "/a")

    for _ in range(5):
        driver.step()

    message = driver.message(message_id)
    assert driver.sent() == []
    assert (message.state, message.attempts, message.failures) == (State.READY, 0, 0)
    assert len(driver.store_driver.attempts(message_id)) == 1, (
        "it was looked at once, and then held"
    )
    assert driver.store_driver.read(lambda s: s.queues.get(queue.queue_no)).held_by == HASH


def test_a_released_queue_continues_where_it_stopped(driver: PusherDriver):
    driver.breaker()
    driver.circuits.force_open(HASH).result()
    queue = driver.queue()
    driver.deliver(queue, "/a")
    driver.step()
    driver.circuits.close(HASH).result()
    driver.step()
    assert driver.sent() == [], "closed, but not released yet"

    driver.circuits.release_next(now=driver.store_driver.now).result()
    driver.step()

    assert driver.sent() == ["/a"]


def test_an_open_circuit_holds_nothing_while_checks_are_disabled(driver: PusherDriver):
    driver.breaker(circuit_check_enabled=False)
    driver.circuits.force_open(HASH).result()
    driver.deliver(driver.queue(), "/a")

    driver.step()

    assert driver.sent() == ["/a"]


def test_a_single_probe_means_one_request_whatever_the_number_of_queues(driver: PusherDriver):
    driver.breaker(single_probe=True)
    driver.circuits.force_open(HASH).result()
    driver.circuits.close(HASH).result()
    driver.breaker(min_queue_sample_count=1, single_probe=True)
    driver.deliver(driver.queue("bad"), "/bad")
    driver.step()
    driver.answer(500)
    driver.circuits.half_open_all(now=driver.store_driver.now).result()
    for number in range(5):
        driver.deliver(driver.queue(f"q{number}"), f"/{number}")

    driver.step()
    driver.step()

    assert len(driver.open()) == 1
    driver.answer(200)
    assert state(driver) is CircuitState.CLOSED


def test_a_probe_aborted_at_a_stop_decides_nothing_and_frees_its_place(
    driver: PusherDriver,
):
    driver.breaker(min_queue_sample_count=1, single_probe=True)
    driver.deliver(driver.queue("bad"), "/bad")
    driver.step()
    driver.answer(500)
    driver.circuits.half_open_all(now=driver.store_driver.now).result()
    queue = driver.queue("probe")
    driver.deliver(queue, "/probe")
    driver.step()

    driver.sender.close()
    driver.step()

    assert state(driver) is CircuitState.HALF_OPEN
    assert driver.open() == ["/probe"], "another queue may probe"


def test_an_expired_request_decides_nothing_about_a_half_open_circuit(driver: PusherDriver):
    driver.breaker(min_queue_sample_count=1)
    driver.deliver(driver.queue("bad"), "/bad")
    driver.step()
    driver.answer(500)
    driver.circuits.half_open_all(now=driver.store_driver.now).result()
    driver.deliver(driver.queue("old"), "/old", x_queue_expire_after="0")
    driver.clock.advance(ms=1)

    driver.step()

    assert state(driver) is CircuitState.HALF_OPEN
    assert driver.sent() == ["/bad"]


def test_an_expired_request_waits_for_an_open_circuit_like_others(driver: PusherDriver):
    """Like gateleen: the circuit is asked first, then the age is checked."""
    driver.breaker(min_queue_sample_count=1)
    driver.deliver(driver.queue("bad"), "/bad")
    driver.step()
    driver.answer(500)
    queue = driver.queue("old")
    old = driver.deliver(queue, "/old", x_queue_expire_after="0")
    driver.clock.advance(ms=1)

    driver.step()
    assert driver.message(old).attempts == 0
    assert driver.store_driver.read(lambda s: s.queues.get(queue.queue_no)).held_by is not None

    driver.circuits.close(circuit_hash("/(.*)")).result()
    for _ in range(2):
        driver.circuits.release_next(now=driver.clock.advance(seconds=10)).result()
    driver.step()
    assert [ending.reason for ending in driver.store_driver.endings()] == ["expired"]
    assert "/old" not in driver.sent()


def test_an_expired_request_leaves_a_single_probe_to_the_next(driver: PusherDriver):
    driver.breaker(min_queue_sample_count=1, single_probe=True)
    driver.deliver(driver.queue("bad"), "/bad")
    driver.step()
    driver.answer(500)
    driver.circuits.half_open_all(now=driver.store_driver.now).result()
    queue = driver.queue("old")
    driver.deliver(queue, "/old", x_queue_expire_after="0")
    driver.deliver(queue, "/new")
    driver.clock.advance(ms=1)

    for _ in range(3):
        driver.step()

    assert driver.open() == ["/new"]


def test_a_slow_success_completes_but_counts_as_a_failure_if_so_configured(driver: PusherDriver):
    driver.breaker(min_queue_sample_count=1, slow_call_ms=100)
    driver.deliver(driver.queue(), "/a")
    driver.step()

    driver.answer(200, took_ms=100)

    assert state(driver) is CircuitState.OPEN
    assert [ending.outcome for ending in driver.store_driver.endings()] == [State.DONE]


def test_the_same_request_failing_repeatedly_counts_once(driver: PusherDriver):
    driver.breaker(min_queue_sample_count=2)
    driver.deliver(driver.queue(), "/a")

    for _ in range(5):
        driver.step()
        driver.answer(500)
        driver.clock.advance(ms=RETRY_MS)

    assert state(driver) is CircuitState.CLOSED


def test_native_deliveries_to_one_uri_count_separately(driver: PusherDriver):
    """50 queues that fail at one endpoint are 50 samples, not one."""
    driver.breaker(min_queue_sample_count=50)
    for number in range(50):
        driver.deliver(driver.queue(f"q{number}"), "/a", unique_id=None)
    driver.step()
    assert len(driver.open()) == 50

    while driver.open():
        assert state(driver) is CircuitState.CLOSED
        driver.answer(500)

    assert state(driver) is CircuitState.OPEN


def test_a_request_without_a_route_affects_no_circuit(driver: PusherDriver):
    driver.rule("/known", url="http://backend/")
    driver.breaker(min_queue_sample_count=1)
    driver.deliver(driver.queue(), "/unknown")

    driver.step()

    assert driver.circuits.all().result() == {}


PROBING = {
    "min_queue_sample_count": 1,
    "open_to_half_open": BreakerTask(True, 300),
    "unlock_probes": BreakerTask(True, 300),
}


def held(driver: PusherDriver, count: int) -> None:
    """So many queues whose heads have failed and wait for long, and which the circuit holds."""
    cast(Wakeups, driver.store_driver.store).listen(driver.pusher.on_wakeup)
    driver.rule(PATTERN, url="http://backend/$1", retryIntervals=[60])
    driver.breaker(**PROBING)
    queues = [driver.queue(f"q{number}") for number in range(count)]
    for queue in queues:
        driver.deliver(queue, f"/{queue.name}")
    driver.step()
    while driver.open():
        driver.answer(500)
    nos = [queue.queue_no for queue in queues]
    driver.store_driver.write(lambda s: hold(s, nos, driver.store_driver.now))


def hold(session: Session, queue_nos: list[int], now: int) -> None:
    session.circuits.lock([HASH])
    transitions.hold(session, {HASH: queue_nos}, now=now)


def tick(driver: PusherDriver) -> None:
    driver.circuits.half_open_all(now=driver.store_driver.now).result()
    driver.circuits.release_probes(now=driver.store_driver.now).result()
    driver.step()


def test_the_head_of_a_queue_that_probes_is_tried_at_once_and_not_after_its_back_off(
    driver: PusherDriver,
):
    held(driver, 1)

    tick(driver)
    assert driver.open() == ["/q0"]
    driver.answer(200)

    assert state(driver) is CircuitState.CLOSED


def test_a_queue_whose_probe_failed_probes_again_without_its_back_off(driver: PusherDriver):
    held(driver, 1)
    tick(driver)
    driver.answer(500)
    assert state(driver) is CircuitState.OPEN

    driver.clock.advance(ms=300)
    tick(driver)

    assert driver.open() == ["/q0"]


def test_an_endpoint_that_stays_down_is_probed_once_per_tick(driver: PusherDriver):
    """However many queues wait, and although their back-offs end in the same instant."""
    held(driver, 30)
    before = len(driver.sent())

    for number in range(40):
        driver.clock.advance(ms=300)
        tick(driver)
        assert len(driver.sent()) == before + number + 1
        driver.answer(500)


def test_while_no_probe_has_answered_a_tick_releases_one_more_queue(driver: PusherDriver):
    held(driver, 30)

    for number in range(5):
        driver.clock.advance(ms=300)
        tick(driver)
        assert len(driver.open()) == number + 1


def test_a_queue_that_is_not_held_any_more_is_tried_at_once(driver: PusherDriver):
    held(driver, 2)
    driver.circuits.close(HASH).result()
    driver.step()
    assert driver.open() == []

    driver.circuits.release_next(now=driver.store_driver.now).result()
    driver.step()

    assert driver.open() == ["/q0"]
