"""Queues through both channels of a client: the same calls, the same records."""

from __future__ import annotations

from datetime import datetime

import msgspec
import pytest

from penstock.client.remote.server import Remote
from penstock.client.resources.queues import QueueClient
from penstock.domain.errors import InvalidRequest, QueueExists, QueueNotEmpty, QueueNotFound
from penstock.domain.queue.queue import QueueSettings
from penstock.operations.queues import QueueOperations
from tests.client.resources.conftest import Connect
from tests.clocks import NOON
from tests.edge.live import LiveServer

pytestmark = pytest.mark.no_store("server")


@pytest.fixture
def queues(connect: Connect, server: LiveServer) -> QueueClient:
    b = server.broker
    return QueueClient(connect(QueueOperations(b.queues, b.history, b.overview).handlers()))


def send(server: LiveServer, queue: str, count: int = 1) -> None:
    with Remote(server.url) as remote:
        for _ in range(count):
            remote.send(queue, {})


def test_a_queue_is_created_changed_and_removed(queues: QueueClient) -> None:
    created = queues.put("mail", {"lease_ms": 5_000})
    assert (created.name, created.settings.lease_ms) == ("mail", 5_000)
    assert created.created_at.timestamp() * 1000 == NOON
    assert queues.get("mail") == created

    assert queues.patch("mail", {"max_attempts": None}).settings == QueueSettings(
        lease_ms=5_000, max_attempts=None
    )
    assert queues.put("mail", QueueSettings(max_attempts=2)).settings.lease_ms == 30_000
    assert queues.pause("mail").is_paused
    assert not queues.resume("mail").is_paused
    assert not queues.unhold("mail").is_paused

    queues.delete("mail")
    with pytest.raises(QueueNotFound):
        queues.get("mail")


def test_only_new_leaves_an_existing_queue_alone(queues: QueueClient) -> None:
    queues.put("mail", {"max_attempts": 2}, only_new=True)

    with pytest.raises(QueueExists):
        queues.put("mail", {"max_attempts": 9}, only_new=True)

    assert queues.get("mail").settings.max_attempts == 2


def test_settings_that_do_not_exist_are_rejected(queues: QueueClient) -> None:
    with pytest.raises(InvalidRequest, match="no_such"):
        queues.put("mail", {"no_such": 1})
    queues.put("mail")
    with pytest.raises(InvalidRequest, match="no_such"):
        queues.patch("mail", {"no_such": 1})


def test_queues_are_listed_page_by_page(queues: QueueClient) -> None:
    names = [f"mail.{number}" for number in range(3)]
    for name in names:
        queues.put(name, {"dead_letter_queue": "dead"})

    page = queues.page(prefix="mail.", limit=2)
    assert ([queue.name for queue in page.queues], page.next) == (names[:2], names[1])
    assert page.queues[0].oldest_ready_at is msgspec.UNSET  # lists do not look it up
    assert [queue.name for queue in queues.page(limit=2, cursor=page.next).queues] == names[2:]
    assert [queue.name for queue in queues.list(contains="L.1")] == ["mail.1"]
    assert [queue.name for queue in queues.list(dead_letter_queue="dead")] == names
    with pytest.raises(InvalidRequest):
        queues.page(limit=1_001)


def test_the_oldest_ready_message_is_dated(queues: QueueClient, server: LiveServer) -> None:
    assert queues.put("mail").oldest_ready_at is None
    send(server, "mail")

    oldest = queues.get("mail").oldest_ready_at

    assert isinstance(oldest, datetime)
    assert oldest.timestamp() * 1000 == NOON


def test_a_queue_with_messages_is_purged_or_removed_by_force(
    queues: QueueClient, server: LiveServer
) -> None:
    queues.put("mail")
    send(server, "mail", 3)
    with pytest.raises(QueueNotEmpty):
        queues.delete("mail")

    assert queues.purge("mail") == 3
    assert queues.get("mail").totals.cancelled == 3

    send(server, "mail")
    queues.delete("mail", force=True)
    assert list(queues.list()) == []


def test_a_redrive_needs_a_limit_of_at_least_one(queues: QueueClient) -> None:
    queues.put("mail")

    assert queues.redrive("mail") == 0
    with pytest.raises(InvalidRequest, match="not 0"):
        queues.redrive("mail", limit=0)
    with pytest.raises(QueueNotFound):
        queues.redrive("nowhere")
