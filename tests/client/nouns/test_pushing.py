"""Routes and deliveries through both channels of a client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from penstock.api import deliveries
from penstock.api.deliveries import Delivery
from penstock.client.channel import Channel
from penstock.client.local.channel import LocalChannel
from penstock.client.nouns.routes import Routes
from penstock.client.remote.transport import Transport
from penstock.domain.errors import InvalidRequest, NotForDeliveries, RouteNotFound
from penstock.domain.queue.queue import QueueSettings
from penstock.operations.deliveries import DeliveryOperations
from penstock.operations.routes import RouteOperations
from penstock.services.deliveries import Deliveries
from tests.clocks import ManualClock
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
    broker = server.broker
    sending = Deliveries(
        broker.messages, broker.queues, broker.directory, broker.routes, broker.settings.limits
    )
    return LocalChannel(
        {
            **RouteOperations(broker.routes).handlers(),
            **DeliveryOperations(sending, broker.clock).handlers(),
        }
    )


def test_routes_are_put_listed_and_matched(channel: Channel) -> None:
    routes = Routes(channel)

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
    Routes(channel).put(RULES)
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
    Routes(channel).put(RULES)
    wanted = Delivery(queue="orders", uri="/shop/a")
    channel.request(deliveries.SEND, wanted)
    queues = server.broker.queues
    removed = queues.get("orders").result().queue
    queues.remove("orders", force=True).result()
    server.broker.directory.keep(removed)  # as if another node had removed it

    accepted = channel.request(deliveries.SEND, wanted)

    assert not accepted.is_duplicate
    assert queues.get("orders").result().counts.sent_total == 1


def test_a_delivery_is_rejected_by_a_queue_that_is_not_for_deliveries(
    channel: Channel, server: LiveServer
) -> None:
    Routes(channel).put(RULES)
    server.broker.queues.put("mail", QueueSettings()).result()

    with pytest.raises(NotForDeliveries):
        channel.request(deliveries.SEND, Delivery(queue="mail", uri="/shop/a"))
