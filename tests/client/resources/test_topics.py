"""Topics through both channels of a client: the same calls, the same records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from penstock.api.messages import Draft
from penstock.client.channel import Channel
from penstock.client.local.channel import LocalChannel
from penstock.client.remote.transport import Transport
from penstock.client.resources.topics import TopicClient
from penstock.domain.bus.subscription import Dispatch
from penstock.domain.datetimes import moment_of
from penstock.domain.errors import (
    InvalidRequest,
    SubscriptionNotFound,
    TopicNotEmpty,
    TopicNotFound,
)
from penstock.wiring.handlers import handlers_of
from tests.clocks import NOON, ManualClock
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer

pytestmark = pytest.mark.no_store("server")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    settings = some_settings(tmp_path / "data")
    with LiveServer(settings, clock=ManualClock(), has_duties=False) as started:
        yield started


@pytest.fixture(params=["over HTTP", "in process"])
def topics(request: pytest.FixtureRequest, server: LiveServer) -> TopicClient:
    channel: Channel
    if request.param == "over HTTP":
        channel = Transport(server.url)
    else:
        channel = LocalChannel(handlers_of(server.broker))
    return TopicClient(channel)


def test_a_topic_is_created_listed_and_removed(topics: TopicClient) -> None:
    made = topics.put("orders")

    assert (made.name, made.created_at, made.published) == ("orders", moment_of(NOON), 0)
    assert made.subscriptions == []
    assert topics.put("orders") == topics.get("orders") == made
    topics.put("mails")
    page = topics.page(limit=1)
    assert [(one.name, one.subscriptions) for one in page.topics] == [("mails", msgspec.UNSET)]
    assert [one.name for one in topics.page(cursor=page.next).topics] == ["orders"]
    assert [one.name for one in topics.page(prefix="ord").topics] == ["orders"]
    topics.remove("orders")
    with pytest.raises(TopicNotFound):
        topics.get("orders")


def test_a_subscription_is_made_changed_and_removed_with_its_queue(
    topics: TopicClient, server: LiveServer
) -> None:
    made = topics.subscribe("orders", "mailer", kinds=["order.*"], settings={"max_attempts": 7})

    assert (made.topic, made.name, made.queue) == ("orders", "mailer", "orders.mailer")
    assert (made.kinds, made.dispatch) == (("order.*",), Dispatch.SHARED)
    queue = server.broker.queues.get("orders.mailer").result().queue
    assert queue.settings.max_attempts == 7
    assert topics.subscription("orders", "mailer") == made
    assert topics.get("orders").subscriptions == [made]
    with pytest.raises(TopicNotEmpty):
        topics.remove("orders")
    sticky = topics.subscribe("orders", "mailer", dispatch="sticky")
    assert (sticky.kinds, sticky.dispatch) == ((), Dispatch.STICKY)
    topics.unsubscribe("orders", "mailer", with_queue=True)
    with pytest.raises(SubscriptionNotFound):
        topics.subscription("orders", "mailer")
    assert server.broker.queues.page(prefix="orders").result() == []


def test_each_matching_subscription_gets_a_message_of_an_event(topics: TopicClient) -> None:
    topics.subscribe("orders", "mailer", kinds=["order.*"])
    topics.subscribe("orders", "audit")

    placed = topics.publish("orders", {"order": 7}, kind="order.placed", dedup_key="7")
    again = topics.publish("orders", {"order": 7}, kind="order.placed", dedup_key="7")
    both = topics.publish_batch("orders", [Draft(1, kind="order.paid"), Draft(2)])

    assert (placed.messages, placed.duplicates) == (2, 0)
    assert (again.messages, again.duplicates) == (0, 2)
    assert [one.messages for one in both] == [2, 1]
    assert topics.get("orders").published == 4


def test_errors_are_those_of_the_broker(topics: TopicClient) -> None:
    with pytest.raises(TopicNotFound):
        topics.publish("nowhere", 1)
    topics.put("orders")
    with pytest.raises(InvalidRequest, match="a batch has 1 to"):
        topics.publish_batch("orders", [])
    with pytest.raises(InvalidRequest):
        topics.subscribe("orders", "mailer", dispatch="neither")
    with pytest.raises(InvalidRequest):
        topics.subscribe("orders", "mailer", settings={"max_attempts": "many"})
    with pytest.raises(InvalidRequest, match="topic's name"):
        topics.put("no spaces")
