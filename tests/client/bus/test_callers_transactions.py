"""Events and notifications in the caller's own transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import psycopg
import pytest

from penstock import Penstock
from tests.client.bus.hand_worker import counts

pytestmark = pytest.mark.ways("own transaction", "sync connection")


class Own:
    """A connection of the application's own, to the same database."""

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

    def end(self, how: str) -> None:
        self.connection.execute(how)


@pytest.fixture
def own(url: str, app: Penstock) -> Iterator[Own]:
    app.open()
    opened = Own(url)
    yield opened
    opened.connection.close()


def test_an_event_exists_exactly_if_the_publisher_commits(app, own, broker, topic):
    broker.bus.subscribe(topic, "a").result()

    app.publish(topic, 1, tx=own.begin())
    own.end("ROLLBACK")
    assert counts(broker, f"{topic}.a").ready == 0

    app.publish(topic, 2, tx=own.begin())
    own.end("COMMIT")
    assert counts(broker, f"{topic}.a").ready == 1
    assert broker.bus.get(topic).result().topic.published == 1


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
