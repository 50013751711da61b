"""Routing rules are one document for all nodes; circuits are removed with their patterns."""

from __future__ import annotations

import json

import pytest

from penstock.domain.circuit.circuit import (
    CircuitState,
    OutcomeReport,
    RequestOutcome,
    circuit_hash,
)
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.errors import InvalidRequest, RouteNotFound
from penstock.domain.fact import FactFilter
from penstock.services.circuits.circuits import CircuitService
from penstock.services.routes import RouteService
from tests.store.driver import StoreDriver


def rules(*patterns: str) -> str:
    return json.dumps({pattern: {"url": "http://h/"} for pattern in patterns})


@pytest.fixture
def routes(store_driver: StoreDriver) -> RouteService:
    return RouteService(store_driver.store, store_driver.clock)


@pytest.fixture
def circuits(store_driver: StoreDriver, routes: RouteService) -> CircuitService:
    made = CircuitService(store_driver.store, store_driver.clock, routes)
    made.breaker.put(
        BreakerSettings(
            circuit_check_enabled=True, statistics_update_enabled=True, min_queue_sample_count=1
        )
    ).result()
    return made


def break_(circuits: CircuitService, pattern: str, queue_no: int | None = None) -> None:
    permitted = circuits.unchecked(pattern, queue_no)
    circuits.report([OutcomeReport(permitted, "a", RequestOutcome.FAILURE)]).result()


def test_without_rules_no_request_is_taken(routes):
    assert routes.get().result() is None
    with pytest.raises(RouteNotFound):
        routes.match("/a")


def test_rules_are_taken_at_once_here_and_soon_elsewhere(store_driver, routes, circuits):
    there = RouteService(store_driver.store, store_driver.clock)
    put = routes.put(rules("/a", "/b/(.*)")).result()

    assert routes.match("/b/c?d").pattern == "/b/(.*)"
    assert there.get().result() == put
    assert there.table.match("/a") is None
    CircuitService(store_driver.store, store_driver.clock, there).refresh()
    assert there.match("/a").pattern == "/a"

    assert there.remove().result()
    assert not there.remove().result()
    circuits.refresh()
    assert routes.table.match("/a") is None


def test_rules_that_are_refused_leave_those_that_are_there(routes):
    put = routes.put(rules("/a")).result()

    with pytest.raises(InvalidRequest, match="/b"):
        routes.put(rules("/a", "/b("))

    assert routes.get().result() == put
    assert routes.match("/a")


def test_circuits_of_patterns_that_stay_keep_their_state_and_others_go(
    store_driver, routes, circuits
):
    queue = store_driver.queue("q")
    routes.put(rules("/a", "/b")).result()
    break_(circuits, "/a")
    break_(circuits, "/b", queue.queue_no)

    routes.put(rules("/c", "/a")).result()

    views = circuits.all().result()
    assert list(views) == [circuit_hash("/a")]
    assert views[circuit_hash("/a")].circuit.state is CircuitState.OPEN
    assert store_driver.read(lambda s: s.circuits.next_for_release(9)) == [queue.queue_no], (
        "it is released in its turn"
    )
    facts = store_driver.read(lambda s: s.facts.search(FactFilter(subject=circuit_hash("/b"))))
    assert [fact.kind for fact in facts] == ["circuit_removed", "circuit_opened"]


def test_the_rules_of_the_store_decide_what_goes_not_those_that_a_node_remembers(
    store_driver, routes, circuits
):
    routes.put(rules("/a")).result()
    break_(circuits, "/a")
    stale = RouteService(store_driver.store, store_driver.clock)

    stale.put(rules("/b")).result()

    assert circuits.all().result() == {}


def test_rules_that_this_version_cannot_read_leave_the_present_ones(
    store_driver, routes, circuits, caplog
):
    routes.put(rules("/a")).result()
    store_driver.write(
        lambda s: s.documents.put("routing_rules", '{"/b": {"new": 1}}', now=store_driver.now)
    )

    circuits.refresh()

    assert routes.match("/a")
    assert "ignoring the stored" in caplog.text
    routes.put(rules("/c")).result()
    assert routes.match("/c")


def test_facts_record_that_rules_were_changed(store_driver, routes):
    routes.put(rules("/a", "/b")).result()
    routes.remove().result()

    facts = store_driver.read(lambda s: s.facts.search(FactFilter(kind="routes_changed")))
    assert [json.loads(fact.data)["routes"] for fact in facts] == [0, 2]
