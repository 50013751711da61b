"""Routes, deliveries and circuits through both channels of a client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from penstock.api import deliveries
from penstock.api.deliveries import Delivery
from penstock.client.channel import Channel
from penstock.client.local.channel import LocalChannel
from penstock.client.remote.transport import Transport
from penstock.client.resources.circuits import CircuitClient, RouteClient
from penstock.domain.circuit.circuit import (
    CircuitState,
    OutcomeReport,
    Permit,
    RequestOutcome,
    circuit_hash,
)
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.errors import (
    CircuitNotFound,
    InvalidRequest,
    NotForDeliveries,
    RouteNotFound,
)
from penstock.domain.queue.queue import QueueSettings
from penstock.operations.circuits import CircuitOperations, CircuitSettingsOperations
from penstock.operations.deliveries import DeliveryOperations, RouteOperations
from penstock.operations.job_circuits import JobCircuitOperations
from penstock.services.routes import DeliveryService
from tests.clocks import NOON, ManualClock
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer

pytestmark = pytest.mark.no_store("server")

RULES = msgspec.Raw(b'{"/shop/(.*)": {"url": "http://127.0.0.1:9/$1", "metricName": "shop"}}')


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    settings = some_settings(tmp_path / "data")
    with LiveServer(settings, clock=ManualClock(), has_duties=False) as started:
        yield started


@pytest.fixture(params=["over HTTP", "in process"])
def channel(request: pytest.FixtureRequest, server: LiveServer) -> Channel:
    if request.param == "over HTTP":
        return Transport(server.url)
    broker, circuits, limits = server.broker, server.broker.circuits, server.broker.settings.limits
    sending = DeliveryService(broker.messages, broker.queues, broker.routes, limits)
    jobs = JobCircuitOperations(circuits, broker.routes, broker.job_routes, limits)
    return LocalChannel(
        {
            **RouteOperations(broker.routes).handlers(),
            **DeliveryOperations(sending, broker.clock).handlers(),
            **CircuitOperations(circuits, broker.circuit_details).handlers(),
            **CircuitSettingsOperations(circuits.breaker, circuits.own_settings).handlers(),
            **jobs.handlers(),
        }
    )


def test_routes_are_put_listed_and_matched(channel: Channel) -> None:
    routes = RouteClient(channel)

    [route] = routes.put(RULES)

    assert routes.list() == [route]
    assert (route.pattern, route.metric_name, route.timeout_ms) == ("/shop/(.*)", "shop", 120_000)
    assert routes.match("/shop/a b").target == "http://127.0.0.1:9/a%20b"
    with pytest.raises(RouteNotFound):
        routes.match("/other")
    with pytest.raises(InvalidRequest):
        routes.put(msgspec.Raw(b'{"/a": {}}'))
    assert routes.list() == [route]


def test_a_delivery_creates_its_queue(channel: Channel, server: LiveServer) -> None:
    RouteClient(channel).put(RULES)
    wanted = Delivery(queue="orders", uri="/shop/a", body=msgspec.Raw(b"[1]"), dedup_key="a")

    accepted = channel.request(deliveries.SEND, wanted)

    assert (accepted.queue, accepted.route, accepted.is_duplicate) == (
        "orders",
        "/shop/(.*)",
        False,
    )
    again = channel.request(deliveries.SEND, wanted)
    assert (again.id, again.is_duplicate) == (accepted.id, True)
    assert server.broker.queues.get("orders").result().counts.sent_total == 1


def test_a_queue_removed_since_the_last_delivery_is_created_again(
    channel: Channel, server: LiveServer
) -> None:
    RouteClient(channel).put(RULES)
    wanted = Delivery(queue="orders", uri="/shop/a")
    channel.request(deliveries.SEND, wanted)
    queues = server.broker.queues
    removed = queues.get("orders").result().queue
    queues.remove("orders", force=True).result()
    server.broker.directory.cache(removed)  # as if another node had removed it

    accepted = channel.request(deliveries.SEND, wanted)

    assert not accepted.is_duplicate
    assert queues.get("orders").result().counts.sent_total == 1


def test_a_delivery_is_rejected_by_a_queue_that_is_not_for_deliveries(
    channel: Channel, server: LiveServer
) -> None:
    RouteClient(channel).put(RULES)
    server.broker.queues.put("mail", QueueSettings()).result()

    with pytest.raises(NotForDeliveries):
        channel.request(deliveries.SEND, Delivery(queue="mail", uri="/shop/a"))


def test_a_circuit_is_opened_and_closed(channel: Channel) -> None:
    circuits = CircuitClient(channel)
    [route] = RouteClient(channel).put(RULES)

    opened = circuits.open(route.circuit)

    assert (opened.state, opened.is_forced) == (CircuitState.OPEN, True)
    assert opened.opened_at is not None
    assert opened.opened_at.timestamp() * 1000 == NOON
    alone = circuits.get(route.circuit)
    assert (alone.held_queues, replace(alone, held_queues=None)) == ([], opened)
    assert circuits.list() == [opened]
    assert circuits.close(route.circuit).state is CircuitState.CLOSED
    circuits.open(route.circuit)
    assert circuits.close_all() == 1
    assert circuits.unhold(route.circuit) == circuits.unhold_all() == 0
    for act in (circuits.get, circuits.open, circuits.close, circuits.unhold):
        with pytest.raises(CircuitNotFound):
            act("none")


def test_settings_are_changed_and_reset(channel: Channel) -> None:
    circuits = CircuitClient(channel)

    changed = circuits.change_settings({"single_probe": True})

    assert changed == circuits.settings() == BreakerSettings(single_probe=True)
    assert circuits.reset_settings() == BreakerSettings()
    with pytest.raises(InvalidRequest):
        circuits.change_settings({"single_prob": True})


def test_one_circuit_overrides_settings(channel: Channel) -> None:
    circuits = CircuitClient(channel)

    circuits.put_own_settings({"single_probe": True}, route="stripe")
    own = circuits.change_own_settings({"min_open_ms": 5}, route="stripe")

    assert (own.route, own.circuit) == ("stripe", circuit_hash("stripe"))
    assert own.overrides.values() == {"single_probe": True, "min_open_ms": 5}
    assert own.settings == BreakerSettings(single_probe=True, min_open_ms=5)
    assert circuits.own_settings(circuit_hash("stripe")) == own
    assert circuits.all_own_settings() == [own]
    assert circuits.reset_own_settings(route="stripe").overrides.values() == {}
    with pytest.raises(InvalidRequest):
        circuits.own_settings()


def test_outcomes_of_jobs_open_their_circuit(channel: Channel) -> None:
    circuits = CircuitClient(channel)
    assert circuits.permits({"stripe": "job-1"}) is None, "no circuit is watched yet"
    circuits.change_settings(
        {
            "circuit_check_enabled": True,
            "statistics_update_enabled": True,
            "min_queue_sample_count": 1,
        }
    )

    permits = circuits.permits({"stripe": "job-1"})
    assert permits is not None
    assert permits["stripe"].permit is Permit.GO
    circuits.report([OutcomeReport(permits["stripe"], "job-1", RequestOutcome.FAILURE)])

    held = circuits.permits({"stripe": "job-2"})
    assert held is not None
    assert (held["stripe"].permit, held["stripe"].wait_ms) == (Permit.HOLD, 120_000)
