"""kombu's fanout exchanges, which are topics of SNS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kombu.asynchronous import Hub, set_event_loop
from kombu.connection import Connection
from kombu.entity import Exchange, Queue
from kombu.messaging import Consumer, Producer

from tests.edge.api import a_name
from tests.edge.live import LiveServer
from tests.edge.sqs.aws import REGION
from tests.support.waiting import eventually

OPTIONS = {
    "is_secure": False,
    "region": REGION,
    "supports_fanout": True,
    "wait_time_seconds": 1,
}


@pytest.fixture
def hub() -> Iterator[Hub]:
    """kombu's event loop, with which it receives."""
    made = Hub()
    set_event_loop(made)
    yield made
    set_event_loop(None)
    made.close()


def test_every_queue_of_a_fanout_exchange_gets_a_message(server: LiveServer, hub: Hub) -> None:
    address = server.url.removeprefix("http://")
    exchange = Exchange(a_name("fan"), type="fanout")
    names = [a_name("queue") for _ in range(2)]
    seen: list[tuple[str, Any]] = []
    with Connection(f"sqs://any:thing@{address}", transport_options=OPTIONS) as connection:
        connection.register_with_event_loop(hub)
        channel = connection.channel()
        for name in names:
            consumer = Consumer(channel, Queue(name, exchange), no_ack=True)
            consumer.register_callback(lambda body, _, name=name: seen.append((name, body)))
            consumer.consume()

        Producer(channel, exchange).publish({"hello": "all"}, serializer="json")

        def both() -> bool:
            hub.run_once()
            return len(seen) == len(names)

        eventually(both)
    assert sorted(seen) == sorted((name, {"hello": "all"}) for name in names)
