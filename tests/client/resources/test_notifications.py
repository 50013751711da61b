"""Notifications through both channels of a client: the same calls, the same records."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.client.channel import Channel
from penstock.client.local.channel import LocalChannel
from penstock.client.remote.transport import Transport
from penstock.client.resources.notifications import NotificationClient
from penstock.domain.datetimes import moment_of
from penstock.domain.errors import InvalidRequest, MessageNotFound, QueueNotFound, WrongState
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import QueueSettings
from penstock.wiring.handlers import handlers_of
from tests.clocks import NOON, ManualClock
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer

pytestmark = pytest.mark.no_store("server")

DUE = moment_of(NOON) + timedelta(days=30)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    settings = some_settings(tmp_path / "data")
    with LiveServer(settings, clock=ManualClock(), has_duties=False) as started:
        started.broker.queues.put("mail", QueueSettings()).result()
        yield started


@pytest.fixture(params=["over HTTP", "in process"])
def notifications(request: pytest.FixtureRequest, server: LiveServer) -> NotificationClient:
    channel: Channel
    if request.param == "over HTTP":
        channel = Transport(server.url)
    else:
        channel = LocalChannel(handlers_of(server.broker))
    return NotificationClient(channel)


def test_a_notification_is_recorded_and_found_with_all_its_fields(
    notifications: NotificationClient,
) -> None:
    recorded = notifications.record(
        "mail",
        {"invoice": 7},
        due_at=DUE,
        tags=("a", "b"),
        kind="invoice",
        attributes={"colour": "red"},
        user_token="mine",
    )

    assert (recorded.is_duplicate, recorded.due_at) == (False, DUE)
    found = notifications.get(recorded.id)
    assert (found.queue, found.state, found.due_at) == ("mail", State.WAITING, DUE)
    assert (found.body, found.tags, found.kind) == ({"invoice": 7}, ("a", "b"), "invoice")
    assert (found.attributes, found.user_token) == ({"colour": "red"}, "mine")
    assert found.future_user_token == recorded.future_user_token
    assert list(notifications.find(tag1="a", queue="mail")) == [found]
    assert list(notifications.find(tag="b", due_before=DUE)) == []
    assert list(notifications.find(tag="b", due_from=DUE, which="future")) == [found]


def test_a_second_one_with_the_same_dedup_key_is_the_first(
    notifications: NotificationClient,
) -> None:
    first = notifications.record("mail", 1, due_at=DUE, dedup_key="k")
    second = notifications.record("mail", 2, due_at=DUE, dedup_key="k")

    assert (second.id, second.is_duplicate) == (first.id, True)
    assert second.future_user_token is None


def test_a_notification_is_changed_removed_and_found_in_history(
    notifications: NotificationClient,
) -> None:
    recorded = notifications.record("mail", 1, due_at=DUE, tags=("a",))

    assert notifications.move(recorded.id, DUE + timedelta(days=1)).id == recorded.id
    notifications.change(recorded.id, body=None, tags=["c"], kind="other")
    changed = notifications.get(recorded.id)
    assert (changed.due_at, changed.tags) == (DUE + timedelta(days=1), ("c",))
    assert (changed.body, changed.kind) == (None, "other")

    assert notifications.remove(recorded.id).state is State.CANCELLED
    [ended] = notifications.past(tag1="c", from_at=moment_of(NOON)).notifications
    assert (ended.id, ended.finished_at) == (recorded.id, moment_of(NOON))
    assert notifications.past(tag1="c", to_at=moment_of(NOON)).notifications == []


def test_all_with_a_tag_are_found_over_several_pages_and_removed(
    notifications: NotificationClient,
) -> None:
    ids = [notifications.record("mail", n, due_at=DUE, tags=("a",)).id for n in range(5)]

    assert [one.id for one in notifications.find(page_size=2, tag1="a")] == ids
    assert notifications.remove_all(queue="mail", tag1="a") == 5
    assert list(notifications.find(tag1="a")) == []
    first = notifications.past(tag1="a", limit=3)
    assert first.next is not None
    rest = notifications.past(tag1="a", limit=3, cursor=first.next)
    assert {one.id for one in (*first.notifications, *rest.notifications)} == set(ids)


def test_errors_are_those_of_the_broker(notifications: NotificationClient) -> None:
    with pytest.raises(QueueNotFound):
        notifications.record("nowhere", 1, due_at=DUE)
    with pytest.raises(QueueNotFound):
        notifications.page(queue="nowhere", tag1="a")
    with pytest.raises(InvalidRequest, match="by their tags"):
        notifications.page(queue="mail")
    with pytest.raises(InvalidRequest):
        notifications.page(tag1="a", limit=0)
    with pytest.raises(MessageNotFound):
        notifications.get("00000000-0000-7000-8000-000000000000")
    recorded = notifications.record("mail", 1, due_at=DUE)
    with pytest.raises(InvalidRequest, match="nothing to change"):
        notifications.change(recorded.id)
    notifications.remove(recorded.id)
    with pytest.raises((WrongState, MessageNotFound)):
        notifications.remove(recorded.id)
