"""Circuits are half-opened, probed and released by duties, once per cluster and interval."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.domain.circuit.circuit import (
    CircuitState,
    OutcomeReport,
    Permit,
    RequestOutcome,
    circuit_hash,
)
from penstock.domain.circuit.settings import BreakerSettings, BreakerTask
from penstock.domain.fact import FactFilter
from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.queue.queue import Queue
from penstock.runtime.circuit_duties import CHECK_MS, CircuitDuty, circuit_duties
from penstock.services.circuits.circuits import CircuitService
from penstock.services.circuits.permits import PermitRequest
from penstock.services.routes import RouteService
from penstock.settings import Settings
from penstock.wiring.broker import Broker
from tests.store.backends import Open
from tests.store.driver import StoreDriver

OPEN, HALF, CLOSED = CircuitState.OPEN, CircuitState.HALF_OPEN, CircuitState.CLOSED
PATTERN = "/pay/(.*)"
HASH = circuit_hash(PATTERN)
HALVES = 2 * MINUTE  # gateleen's intervals
PROBES = 2 * MINUTE
GOING = 10 * SECOND
OFF = BreakerTask(enabled=False, interval_ms=1)
ON: dict[str, Any] = {
    "circuit_check_enabled": True,
    "statistics_update_enabled": True,
    "min_queue_sample_count": 1,
    "open_to_half_open": BreakerTask(enabled=True, interval_ms=HALVES),
    "unlock_probes": BreakerTask(enabled=True, interval_ms=PROBES),
    "unlock_queues": BreakerTask(enabled=True, interval_ms=GOING),
}


@pytest.fixture
def backend() -> str:
    """Duties only call services; the circuits of tests/services are tested on both."""
    return "sqlite"


class Node:
    """One of several, each with its own memory of settings and its own duties."""

    def __init__(self, driver: StoreDriver, store: Any) -> None:
        self.driver = driver
        self.circuits = CircuitService(store, driver.clock, RouteService(store, driver.clock))
        self.duties = circuit_duties(self.circuits)

    def tick(self) -> list[int]:
        """All duties, after a look at the settings; returns when they want to be asked again."""
        self.circuits.refresh()
        now = self.driver.now
        return [duty.tick(now) for duty in self.duties]

    def put(self, **changes: Any) -> None:
        self.circuits.breaker.put(BreakerSettings(**(ON | changes))).result()

    def open(self, *queues: Queue) -> None:
        """All of them are held, in this order."""
        permits = self.circuits.permits([PermitRequest(PATTERN, queues[0].queue_no)]).result()
        self.circuits.report([OutcomeReport(permits[0], "a", RequestOutcome.FAILURE)]).result()
        for queue in queues[1:]:
            self.driver.clock.advance(ms=1)
            found = self.circuits.permits([PermitRequest(PATTERN, queue.queue_no)]).result()
            assert [one.permit for one in self.circuits.secure(found).result()] == [Permit.HOLD]

    @property
    def state(self) -> CircuitState:
        return self.circuits.status(HASH).result()


@pytest.fixture
def node(driver: StoreDriver) -> Node:
    made = Node(driver, driver.store)
    made.put()
    rules = json.dumps({PATTERN: {"url": "http://h/"}})
    RouteService(driver.store, driver.clock).put(rules).result()
    made.circuits.refresh()
    return made


@pytest.fixture
def other(driver: StoreDriver, node: Node, open_store: Open) -> Iterator[Node]:
    store = open_store() if driver.store.backend == "postgres" else driver.store
    yield Node(driver, store)
    if store is not driver.store:
        store.close()


@pytest.fixture
def queues(driver: StoreDriver) -> list[Queue]:
    return [driver.queue(f"q{i}") for i in range(4)]


def held(driver: StoreDriver, queues: list[Queue]) -> list[str]:
    found = [driver.read(lambda s: s.queues.get(queue.queue_no)) for queue in queues]  # noqa: B023
    return [queue.name for queue in found if queue.held_by is not None]


def changes(driver: StoreDriver) -> list[str]:
    found = driver.read(lambda s: s.facts.search(FactFilter(subject=HASH)))
    return [fact.kind.removeprefix("circuit_") for fact in found[::-1]]


def test_an_open_circuit_becomes_half_open_after_the_interval(driver, node, queues):
    node.tick()
    node.open(queues[0])
    driver.clock.advance(ms=HALVES - 1)
    node.tick()
    assert node.state is OPEN

    driver.clock.advance(ms=1)
    node.tick()
    assert node.state is HALF


def test_a_half_open_circuit_releases_one_queue_per_interval_the_longest_held_first(
    driver, node, queues
):
    node.open(queues[2], queues[0], queues[1])
    node.tick()
    assert node.state is HALF
    gone = []
    for _ in range(4):
        before = held(driver, queues)
        driver.clock.advance(ms=PROBES)
        node.tick()
        [tried] = set(before) - set(held(driver, queues))
        gone.append(tried)
        driver.write(lambda s: s.queues.hold([q.queue_no for q in queues[:3]], by=HASH))

    assert gone == ["q0", "q1", "q2", "q0"], "q2 had gone at the first tick"


def test_queues_of_a_closed_circuit_are_released_one_per_interval(driver, node, queues):
    node.tick()
    node.open(*queues)
    node.circuits.close(HASH).result()
    left = []
    for _ in range(5):
        driver.clock.advance(ms=GOING)
        node.tick()
        left.append(held(driver, queues))

    assert left == [["q1", "q2", "q3"], ["q2", "q3"], ["q3"], [], []]


def test_the_number_of_released_queues_grows_if_so_configured_and_starts_over_when_none_was_held(
    driver, node
):
    node.put(unlock_growth=2.0, max_unlocks=3)
    node.tick()
    queues = [driver.queue(f"r{i}") for i in range(9)]
    for _ in range(2):
        node.open(*queues)
        node.circuits.close(HASH).result()
        left = []
        for _ in range(4):
            driver.clock.advance(ms=GOING)
            node.tick()
            left.append(len(held(driver, queues)))
        assert left == [8, 6, 3, 0]
        driver.clock.advance(ms=GOING)
        node.tick()


def test_a_circuit_whose_probes_fail_stays_open_ever_longer_if_so_configured(driver, node, queues):
    node.put(open_growth=2.0)
    node.open(queues[0])
    for tries in range(3):
        driver.clock.advance(ms=HALVES * 2**tries - 1)
        node.tick()
        assert node.state is OPEN
        driver.clock.advance(ms=HALVES)
        node.tick()
        assert node.state is HALF
        [permitted] = node.circuits.permits([PermitRequest(PATTERN, queues[1].queue_no)]).result()
        node.circuits.report([OutcomeReport(permitted, "p", RequestOutcome.FAILURE)]).result()


def test_each_duty_runs_once_per_interval_however_many_nodes_there_are(driver, node, other, queues):
    nodes = [node, other]
    for one in nodes * 2:
        one.tick()
    node.open(*queues)
    node.circuits.close(HASH).result()
    left = []
    for _ in range(3):
        for _ in range(2):
            driver.clock.advance(ms=GOING // 2)
            for one in nodes:
                one.tick()
        left.append(len(held(driver, queues)))

    assert left == [3, 2, 1]


def test_a_circuit_is_half_opened_by_one_of_the_nodes(driver, node, other, queues):
    node.open(queues[0])

    for one in (node, other, node, other):
        one.tick()

    assert changes(driver) == ["opened", "half_opened"]
    assert len(held(driver, queues)) == 0, "and its only queue was released to probe, once"


def test_when_a_node_is_killed_another_takes_over(driver, node, other, queues):
    node.tick()
    node.open(queues[0])
    other.tick()
    driver.clock.advance(ms=HALVES)

    other.tick()

    assert other.state is HALF


def test_a_node_that_was_not_first_tries_again_when_the_duty_is_due(driver, node, other):
    node.put(unlock_queues=BreakerTask(enabled=True, interval_ms=500))
    first = node.tick()
    driver.clock.advance(ms=200)

    assert first[2] == driver.now + 300
    assert other.tick()[2] == driver.now + 300


def test_a_disabled_duty_does_nothing(driver, node, queues):
    node.put(open_to_half_open=OFF, unlock_probes=OFF)
    node.open(*queues)
    driver.clock.advance(ms=HALVES)

    node.tick()

    assert node.state is OPEN
    assert len(held(driver, queues)) == 4


def test_queues_of_a_closed_circuit_are_released_at_once_if_no_duty_would(driver, node, queues):
    node.put(unlock_queues=OFF)
    node.open(*queues)

    assert node.tick()[-1] == driver.now + CHECK_MS
    assert len(held(driver, queues)) == 3, "an open circuit holds them, but for the one that tries"

    node.circuits.close(HASH).result()
    node.tick()
    assert held(driver, queues) == []


def test_held_queues_are_released_when_checks_are_disabled(driver, node, other, queues):
    node.put(open_to_half_open=OFF)
    node.open(*queues)
    node.tick()
    assert len(held(driver, queues)) == 4

    node.circuits.breaker.reset().result()
    other.tick()

    assert held(driver, queues) == []
    assert node.state is OPEN, "it is only not asked"


def test_held_queues_are_released_slowly_if_so_configured_when_checks_are_disabled(
    driver, node, queues
):
    node.put(open_to_half_open=OFF)
    node.tick()
    node.open(*queues)
    node.put(circuit_check_enabled=False, open_to_half_open=OFF)
    left = []
    for _ in range(4):
        node.tick()
        driver.clock.advance(ms=GOING)
        node.tick()
        left.append(len(held(driver, queues)))

    assert left == [3, 2, 1, 0]


def test_queues_of_a_removed_rule_are_released_at_once_if_no_duty_would(driver, node, queues):
    node.put(unlock_queues=OFF)
    node.open(*queues)

    RouteService(driver.store, driver.clock).remove().result()
    node.tick()

    assert held(driver, queues) == []


def test_new_settings_take_effect_at_once(driver, node, other, queues):
    node.tick()
    other.tick()
    node.open(queues[0])
    driver.clock.advance(ms=10)

    node.put(open_to_half_open=BreakerTask(enabled=True, interval_ms=100))
    other.tick()

    assert other.state is HALF


def test_the_store_is_asked_only_when_something_is_due(driver, node):
    asked = []

    def do(*, now: int) -> Any:
        asked.append(now)
        return node.circuits.release_next(now=now)

    duty = CircuitDuty("queues released", node.circuits, do, lambda s: s.unlock_queues)
    start = driver.now
    for _ in range(21):
        assert duty.tick(driver.now) == driver.now + CHECK_MS
        driver.clock.advance(ms=CHECK_MS)

    assert asked == [start, start + GOING, start + 2 * GOING]


def test_a_broker_has_circuits_and_does_their_duties(driver, node, queues):
    broker = Broker(driver.store, driver.clock, Settings())
    broker.circuits.refresh()
    node.open(queues[0])

    broker.run_duties()

    assert broker.circuits.status(HASH).result() is HALF
    assert broker.routes.match("/pay/1").pattern == PATTERN
