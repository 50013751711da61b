"""Ten thousand queues need neither a thread nor a connection each."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.domain.delivery.delivery import GROUP, KIND, Delivery, queue_settings, to_body
from penstock.domain.message.draft import Draft
from penstock.settings import Settings
from penstock.settings.push import PushSettings
from penstock.wiring.broker import Broker, migrate, open_broker
from tests.runtime.pusher.waiting import until
from tests.support.http_backend import HttpBackend

QUEUES = 10_000
AT_ONCE = 50  # requests under way
OWN_THREADS = 3  # the pusher's, the one that it sends on, and one that looks names up


@pytest.fixture
def shop() -> Iterator[HttpBackend]:
    with HttpBackend() as backend:
        yield backend


@pytest.fixture
def broker(tmp_path: Path, shop: HttpBackend) -> Iterator[Broker]:
    settings = Settings(data=str(tmp_path), push=PushSettings(concurrency=AT_ONCE))
    migrate(settings)
    with closing(open_broker(settings)) as broker:
        broker.routes.put(json.dumps({"/(.*)": {"url": f"{shop.url}/$1"}})).result()
        yield broker


def fill(broker: Broker) -> None:
    """One delivery in each."""
    now = broker.clock.now()
    queues = broker.store.write(
        lambda s: [s.queues.add(f"q{i}", queue_settings(), now=now) for i in range(QUEUES)]
    ).result()
    drafts = []
    for queue in queues:
        delivery = Delivery(method="POST", uri=f"/{queue.name}", payload=b"{}", queued_at=now)
        draft = Draft(body=to_body(delivery), group=GROUP, kind=KIND, entity_id=delivery.uri)
        drafts.append(broker.messages.draft(queue, draft))
    for start in range(0, QUEUES, 500):
        broker.messages.send(drafts[start : start + 500]).result()


def sockets() -> int:
    """Of this process, the backend's own ones included."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
        except FileNotFoundError:  # closed meanwhile
            continue
    return count


def test_ten_thousand_queues_are_pushed_with_few_threads_and_connections(
    broker: Broker, shop: HttpBackend
):
    fill(broker)
    threads, connections = threading.active_count(), sockets()
    shop.hold()

    broker.start_pushing()
    shop.wait_for(AT_ONCE)
    held = threading.active_count(), sockets()
    shop.release()
    for part in range(1, 11):  # of a busy machine each may take its time
        until(lambda part=part: len(shop.seen) >= QUEUES // 10 * part)  # type: ignore[misc]
    after = threading.active_count(), sockets()

    assert sorted(shop.targets) == sorted(f"/q{i}" for i in range(QUEUES)), "each once"
    assert shop.most_at_once == AT_ONCE
    for now_threads, now_sockets in (held, after):
        assert now_threads <= threads + OWN_THREADS
        # Both ends of each are in this process; some more are what event loops wake each other by.
        assert now_sockets <= connections + 2 * AT_ONCE + 10
