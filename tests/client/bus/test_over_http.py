"""What only a server has: its resources as objects; and it cannot join the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock import Penstock
from penstock.api.messages import Draft
from penstock.client.remote.server import Remote
from penstock.domain.errors import InvalidRequest, TopicNotFound
from tests.clocks import ManualClock
from tests.edge import conftest as edge
from tests.edge.api import a_name
from tests.edge.live import LiveServer

server = edge.server

pytestmark = pytest.mark.no_store("server")


@pytest.fixture
def clock(server: LiveServer) -> ManualClock:
    assert isinstance(server.clock, ManualClock)
    return server.clock


@pytest.fixture
def far(server: LiveServer, clock: ManualClock) -> Iterator[Penstock]:
    with Penstock(server.url, clock=clock) as opened:
        yield opened


@pytest.fixture
def remote(server: LiveServer) -> Iterator[Remote]:
    with Remote(server.url) as client:
        yield client


def test_a_transaction_of_ones_own_needs_a_store_of_ones_own(far: Penstock) -> None:
    with pytest.raises(InvalidRequest, match="tx="):
        far.publish(a_name("topic"), 1, tx=object())
    with pytest.raises(InvalidRequest, match="tx="):
        far.notifications("billing").record(1, tx=object())


def test_the_resources_of_a_server(remote: Remote) -> None:
    topic = a_name("topic")

    remote.topics.put(topic)
    made = remote.topics.subscribe(topic, "a", kinds=["x"], settings={"max_attempts": 3})
    assert remote.topics.subscription(topic, "a") == made
    assert remote.topics.publish(topic, None, kind="x", dedup_key="k").messages == 1
    again = remote.topics.publish_batch(topic, [Draft(None, kind="x", dedup_key="k")])
    assert [one.duplicates for one in again] == [1]
    assert [one.name for one in remote.topics.page(prefix=topic).topics] == [topic]
    remote.topics.unsubscribe(topic, "a", with_queue=True)
    remote.topics.remove(topic)
    with pytest.raises(TopicNotFound):
        remote.topics.get(topic)


def test_a_notification_of_a_server(remote: Remote, clock: ManualClock) -> None:
    queue, account = a_name("queue"), a_name("account")
    remote.queues.put(queue)

    made = remote.notifications.record(queue, [1], delay_ms=1_000, tags=(account,), user_token="u")
    shown = remote.notifications.get(made.id)

    assert (shown.body, shown.user_token, shown.due_at) == ([1], "u", made.due_at)
    assert list(remote.notifications.find(tag=account, page_size=1)) == [shown]
    assert remote.claim(queue) == []  # it is not due
