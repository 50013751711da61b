"""The same API over a server elsewhere, and the server's nouns as an object."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from penstock import Penstock
from penstock.client.drafts import Draft
from penstock.client.remote import Remote
from penstock.domain.errors import InvalidRequest, TopicNotFound
from penstock.domain.message import State
from tests.clocks import ManualClock
from tests.edge import conftest as edge
from tests.edge.api import a_name
from tests.edge.live import LiveServer

server = edge.server

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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


def test_a_queue_that_a_server_does_not_have_yet_has_no_notifications(far: Penstock) -> None:
    fresh = far.notifications(a_name("fresh"))

    assert list(fresh.find(tag1="a1")) == []
    assert list(fresh.past(tag1="a1")) == []
    assert fresh.remove_all(tag1="a1") == 0


def test_notifications_work_the_same_over_a_server(far: Penstock, clock: ManualClock) -> None:
    billing, account = far.notifications(a_name("billing")), a_name("account")
    later = EPOCH + timedelta(milliseconds=clock.now(), days=30)

    made = [billing.record({"n": n}, due_at=later, tags=(account, "t")) for n in range(3)]
    billing.move(made[0].id, later + timedelta(days=1))
    billing.change(made[1].id, body=None, kind="k")

    found = list(billing.find(tag1=account, tag2="t", which="future"))
    assert [one.id for one in found] == [one.id for one in made]
    assert found[0].due_at == later + timedelta(days=1)
    assert (found[1].body, found[1].kind) == (None, "k")
    assert found[2].future_user_token == made[2].future_user_token
    assert billing.remove(made[0].id).state is State.CANCELLED
    assert billing.remove_all(tag1=account) == 2
    assert {one.state for one in billing.past(tag1=account, tag2="t")} == {State.CANCELLED}


def test_events_work_the_same_over_a_server(far: Penstock, remote: Remote) -> None:
    topic = a_name("topic")

    @far.subscribe(topic, name="mailer", kinds="order.*", queue={"ordering": "group"})
    def mailer(event: dict) -> None:
        pass

    assert far.publish(topic, {"n": 1}, kind="order.placed").messages == 1
    assert [p.messages for p in far.publish_many(topic, [1, 2], kind="other")] == [0, 0]

    assert remote.queues.get(f"{topic}.mailer").settings.ordering == "group"
    assert remote.topics.get(topic).unmatched == 2


def test_a_topic_that_nobody_has_made_is_made(far: Penstock, remote: Remote) -> None:
    topic = a_name("topic")

    assert far.publish(topic, 1).messages == 0

    assert remote.topics.get(topic).published == 1


def test_a_transaction_of_ones_own_needs_a_store_of_ones_own(far: Penstock) -> None:
    with pytest.raises(InvalidRequest, match="tx="):
        far.publish(a_name("topic"), 1, tx=object())
    with pytest.raises(InvalidRequest, match="tx="):
        far.notifications("billing").record(1, tx=object())


def test_the_nouns_of_a_server(remote: Remote) -> None:
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
