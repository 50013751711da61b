"""Events and notifications in the caller's own transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import psycopg
import pytest

from penstock import Penstock
from penstock.domain.errors import InvalidRequest
from tests.client.bus.driver import counts

pytestmark = pytest.mark.environments("own transaction", "sync connection")


class Own:
    """The application's own connection to the same database."""

    def __init__(self, url: str) -> None:
        self.connection: sqlite3.Connection | psycopg.Connection
        if url.startswith("sqlite"):
            path = url.removeprefix("sqlite:///").partition("?")[0]
            self.connection = sqlite3.connect(path, isolation_level=None)
        else:
            self.connection = psycopg.connect(url, autocommit=True)

    def begin(self) -> object:
        self.connection.execute("BEGIN")
        return self.connection

    def write(self) -> object:
        """Begin a transaction and hold the write lock until it ends."""
        self.connection.execute("CREATE TABLE IF NOT EXISTS own_order (id INTEGER)")
        tx = self.begin()
        self.connection.execute("INSERT INTO own_order VALUES (1)")
        return tx

    def end(self, how: str) -> None:
        self.connection.execute(how)


@pytest.fixture
def own(url: str, app: Penstock) -> Iterator[Own]:
    app.open()
    opened = Own(url)
    yield opened
    opened.connection.close()


def test_an_event_exists_exactly_if_the_publisher_commits(app, own, broker, topic):
    broker.topics.subscribe(topic, "a").result()

    app.publish(topic, 1, tx=own.begin())
    own.end("ROLLBACK")
    assert counts(broker, f"{topic}.a").ready == 0

    app.publish(topic, 2, tx=own.begin())
    own.end("COMMIT")
    assert counts(broker, f"{topic}.a").ready == 1
    assert broker.topics.get(topic).result().topic.published == 1


def test_a_notification_exists_exactly_if_the_caller_commits(app, own, queue, account):
    billing = app.notifications(queue)
    billing.record("first", delay="1h", tags=(account,))

    billing.record("no", delay="1h", tags=(account,), tx=own.begin())
    own.end("ROLLBACK")
    billing.record("yes", delay="1h", tags=(account,), tx=own.begin())
    own.end("COMMIT")

    assert [one.body for one in billing.find(tag1=account)] == ["first", "yes"]


def test_a_notification_is_changed_and_removed_exactly_if_the_caller_commits(
    app, own, queue, account
):
    billing = app.notifications(queue)
    recorded = [billing.record(n, delay="1h", tags=(account,)).id for n in range(3)]

    tx = own.begin()
    billing.change(recorded[0], body="changed", tx=tx)
    billing.remove(recorded[1], tx=tx)
    assert billing.remove_all(tag1=account, tx=tx) == 2
    own.end("ROLLBACK")
    assert [one.body for one in billing.find(tag1=account)] == [0, 1, 2]

    tx = own.begin()
    billing.change(recorded[0], body="changed", tx=tx)
    billing.remove(recorded[1], tx=tx)
    own.end("COMMIT")
    assert [one.body for one in billing.find(tag1=account)] == ["changed", 2]


def _orders(app: Penstock, topic: str) -> None:
    @app.subscribe(topic, name="a", kinds="order.*", queue={"max_messages": 5})
    def on_order(event: int) -> None: ...


def test_the_first_publish_of_a_process_makes_its_subscriptions_in_the_callers_transaction(
    app, own, broker, topic
):
    _orders(app, topic)

    tx = own.write()
    published = app.publish(topic, 1, kind="order.placed", tx=tx)
    again = app.publish(topic, 2, kind="order.placed", tx=tx)
    own.end("COMMIT")

    assert (published.messages, again.messages) == (1, 1)
    assert counts(broker, f"{topic}.a").ready == 2
    made = broker.queues.get(f"{topic}.a").result().queue
    assert made.settings.max_messages == 5


def test_a_rolled_back_first_publish_leaves_nothing_and_the_next_one_works(app, own, broker, topic):
    _orders(app, topic)

    app.publish(topic, 1, kind="order.placed", tx=own.write())
    own.end("ROLLBACK")
    assert app.publish(topic, 2, kind="order.placed", tx=own.write()).messages == 1
    own.end("COMMIT")
    assert app.publish(topic, 3, kind="order.placed").messages == 1

    assert counts(broker, f"{topic}.a").ready == 2


def test_in_a_new_process_the_first_publish_works_at_once_and_a_changed_subscription_counts(
    app, own, url, clock, broker, topic
):
    _orders(app, topic)
    app.publish(topic, 1, kind="order.placed")

    with Penstock(url, clock=clock) as second:
        _orders(second, topic)
        assert second.publish(topic, 2, kind="order.placed", tx=own.write()).messages == 1
        own.end("COMMIT")
    with Penstock(url, clock=clock) as changed:

        @changed.subscribe(topic, name="a")
        def on_order(event: int) -> None: ...

        assert changed.publish(topic, 3, kind="other", tx=own.write()).messages == 1
        own.end("COMMIT")

    assert counts(broker, f"{topic}.a").ready == 3


@pytest.mark.environments("file")
def test_nothing_of_the_client_opens_a_file_inside_the_callers_transaction(
    url, own, clock, queue, topic
):
    closed = Penstock(url, clock=clock)
    due, tx = closed.notifications(queue), own.write()
    calls = [
        lambda: closed.publish(topic, 1, tx=tx),
        lambda: due.record("x", delay="1h", tx=tx),
        lambda: due.change("id", body=1, tx=tx),
        lambda: due.remove("id", tx=tx),
        lambda: due.remove_all(tag1="a", tx=tx),
        lambda: list(due.find(tag1="a", tx=tx)),
        lambda: list(due.past(tag1="a", tx=tx)),
    ]

    for call in calls:
        with pytest.raises(InvalidRequest, match=r"call app.open\(\) before"):
            call()


def test_look_ups_in_the_callers_transaction_see_what_it_has_not_committed_yet(
    app, own, queue, account
):
    billing = app.notifications(queue)

    tx = own.write()
    recorded = billing.record("x", delay="1h", tags=(account,), tx=tx)
    assert [one.id for one in billing.find(tag1=account, tx=tx)] == [recorded.id]
    assert [one.id for one in billing.find(tag1=account)] == []
    billing.remove(recorded.id, tx=tx)
    assert [one.id for one in billing.past(tag1=account, tx=tx)] == [recorded.id]
    assert [one.id for one in billing.past(tag1=account)] == []
    own.end("ROLLBACK")
