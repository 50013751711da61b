"""The whole story of an outage, against a real backend that fails on demand.

Healthy, failing, open, held, half-open and failing again, half-open and healthy, closed, and one
queue after the other released.  Nothing is lost, order is kept, and the backend is spared.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from penstock.domain.circuit.circuit import CircuitState, circuit_hash
from penstock.domain.circuit.settings import BreakerTask
from penstock.domain.limits import SECOND
from penstock.domain.message.lifecycle import State
from penstock.outbound.http_sender import HttpSender
from penstock.runtime.circuit_duties import circuit_duties
from penstock.runtime.pusher.outgoing import BackoffSettings
from penstock.runtime.pusher.pusher import Pusher, PusherSettings
from tests.runtime.pusher.driver import LEASE_MS, RETRY_MS, PusherDriver
from tests.store.counter_checks import check_counters
from tests.store.driver import StoreDriver
from tests.support.http_backend import WAIT_S, Answer, Hang, HangUp, HttpBackend, Seen

PATTERN = "/shop/(.*)"
HASH = circuit_hash(PATTERN)
QUEUES = 12
OPEN_S, TRY_S, NEXT_S = 60, 60, 10


@pytest.fixture
def backend() -> str:
    """What a pusher does is not in the store; test_sharing and test_killed run on both."""
    return "sqlite"


class OutageDriver(PusherDriver):
    """A node in slow motion: its steps and duties are done when the test says so."""

    def __init__(self, store_driver: StoreDriver, backend: HttpBackend) -> None:
        super().__init__(store_driver)
        self.backend = backend
        self._woken = threading.Event()
        self.http = HttpSender(store_driver.clock, connections=50, keep_alive_ms=4_000)
        self.pusher = Pusher(
            store_driver.store,
            self.http,
            self.routes,
            self.circuits,
            settings=PusherSettings(
                concurrency=50, lease_ms=LEASE_MS, scan_ms=0, backoff=BackoffSettings()
            ),
            holder="node",
            wake=self._woken.set,
        )
        self.duties = circuit_duties(self.circuits)
        # The timeout is in real seconds: `Hang` waits for it.
        self.rule(PATTERN, url=f"{backend.url}/$1", timeout=3)
        self.breaker(
            error_threshold_percentage=50,
            min_queue_sample_count=10,
            open_to_half_open=BreakerTask(enabled=True, interval_ms=OPEN_S * SECOND),
            unlock_probes=BreakerTask(enabled=True, interval_ms=TRY_S * SECOND),
            unlock_queues=BreakerTask(enabled=True, interval_ms=NEXT_S * SECOND),
        )
        for duty in self.duties:  # from here on, one interval until each does something
            duty.tick(store_driver.now)
        self.queues = [self.queue(f"q{number}") for number in range(QUEUES)]
        self._sent = [0] * QUEUES

    def deliver_one_each(self) -> None:
        for number, queue in enumerate(self.queues):
            super().deliver(queue, f"/shop/{number}/{self._sent[number]}")
            self._sent[number] += 1

    def run(self) -> int:
        """Until nothing is under way and nothing is to be sent; how many were tried.

        What is sent again because its connection was closed meanwhile is one attempt.
        """
        before = len(self.backend.seen)
        while self.step() <= self.clock.now() and (self.pusher.in_flight or self._has_waiting()):
            if self.pusher.in_flight:
                assert self._woken.wait(WAIT_S)
                self._woken.clear()
        return len(set(self.backend.targets[before:]))

    def _has_waiting(self) -> bool:
        return not self.pusher._round_robin.is_empty

    def let_pass(self, seconds: int) -> int:
        """Second by second, with all duties; how many the backend saw."""
        seen = 0
        for _ in range(seconds):
            self.clock.advance(seconds=1)
            for duty in self.duties:
                duty.tick(self.clock.now())
            seen += self.run()
        return seen

    def state(self) -> CircuitState:
        return self.circuits.status(HASH).result()

    @property
    def held(self) -> int:
        found = self.store_driver.read(
            lambda s: [s.queues.get(q.queue_no).held_by for q in self.queues]
        )
        return sum(by is not None for by in found)

    def attempts(self) -> set[int]:
        ready = [m for q in self.queues for m in self.store_driver.browse(q, State.READY)]
        return {m.attempts for m in ready}


@pytest.fixture
def shop() -> Iterator[HttpBackend]:
    with HttpBackend() as backend:
        yield backend


@pytest.fixture
def driver(store_driver: StoreDriver, shop: HttpBackend) -> Iterator[OutageDriver]:
    driver = OutageDriver(store_driver, shop)
    yield driver
    driver.http.close()


def test_an_outage_from_beginning_to_end(driver: OutageDriver, shop: HttpBackend):
    # Healthy.
    driver.deliver_one_each()
    assert driver.run() == QUEUES
    assert driver.state() is CircuitState.CLOSED

    # It fails, in all the ways there are: open as soon as half of the requests do.
    shop.behave = in_every_way
    driver.deliver_one_each()
    driver.deliver_one_each()
    assert driver.run() == QUEUES
    assert driver.state() is CircuitState.OPEN

    # Held, queue by queue as they come back; from here on the backend is left in peace.
    assert driver.let_pass(RETRY_MS // SECOND) == 0
    assert driver.held == QUEUES
    assert driver.let_pass(OPEN_S - RETRY_MS // SECOND - 1) == 0
    driver.deliver_one_each()
    assert driver.run() == 0
    assert driver.attempts() == {0, 1}, "none was spent since it is open"

    # Half-open: one queue is released to probe, and its failure opens the circuit again.
    probes = driver.let_pass(2 * OPEN_S)
    assert 1 <= probes <= 2
    assert driver.state() in (CircuitState.OPEN, CircuitState.HALF_OPEN)

    # Healthy again: the next probe closes it.
    shop.answer(200)
    while driver.state() is not CircuitState.CLOSED:
        before = len(shop.seen)
        assert driver.let_pass(1) <= 3, "one queue, and all that it has"
    assert len(shop.seen) - before <= 3

    # Slowly, one queue at a time.
    for _ in range(QUEUES + 1):
        assert driver.let_pass(NEXT_S) <= 3
    assert driver.held == 0

    check_that_nothing_was_lost(driver, shop)


def in_every_way(seen: Seen) -> Answer | Hang | HangUp:
    number = int(seen.target.split("/")[1])
    return (Answer(503), HangUp(), Hang())[min(number % 4, 2)]


def check_that_nothing_was_lost(driver: OutageDriver, shop: HttpBackend) -> None:
    endings = driver.store_driver.endings()
    assert [ending.outcome for ending in endings] == [State.DONE] * 4 * QUEUES
    for number in range(QUEUES):
        came = [seen.target for seen in shop.seen if seen.target.startswith(f"/{number}/")]
        assert list(dict.fromkeys(came)) == [f"/{number}/{place}" for place in range(4)]
        assert came == sorted(came), "one after the other, also those that were tried again"
    check_counters(driver.store_driver)


def test_an_endpoint_that_is_slow_at_times_is_not_an_outage(
    driver: OutageDriver, shop: HttpBackend
):
    shop.hold()
    driver.deliver_one_each()
    driver.step()
    shop.wait_for(QUEUES)
    for _ in range(5):
        driver.clock.advance(ms=LEASE_MS // 3)
        driver.step()

    shop.release()
    driver.run()

    assert len(shop.seen) == QUEUES
    assert [ending.attempts for ending in driver.store_driver.endings()] == [1] * QUEUES
    assert driver.state() is CircuitState.CLOSED
