"""The pusher in its own thread, wired as in a server, against a real backend."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.domain.delivery.delivery import GROUP, KIND, Delivery, queue_settings, to_body
from penstock.domain.limits import SECOND
from penstock.domain.message.draft import Draft
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Queue
from penstock.settings import Settings
from penstock.settings.push import PushSettings
from penstock.settings.values import ServerSettings, StoreSettings
from penstock.wiring.broker import Broker, migrate, open_broker
from tests.runtime.pusher.waiting import until
from tests.support.http_backend import HttpBackend


@pytest.fixture
def shop() -> Iterator[HttpBackend]:
    with HttpBackend() as backend:
        yield backend


class Node:
    def __init__(self, settings: Settings, shop: HttpBackend) -> None:
        self.broker = open_broker(settings)
        rules = {"/(.*)": {"url": f"{shop.url}/$1"}}
        self.broker.routes.put(json.dumps(rules)).result()

    def deliver(self, name: str, uri: str) -> None:
        broker = self.broker
        queue = self._queue(broker, name)
        now = broker.clock.now()
        delivery = Delivery(method="POST", uri=uri, payload=b"{}", queued_at=now)
        draft = Draft(body=to_body(delivery), group=GROUP, kind=KIND, entity_id=uri)
        broker.messages.send([broker.messages.draft(queue, draft)]).result()

    def states(self, name: str) -> Counter[str]:
        view = self.broker.queues.get(name).result()
        counts = view.counts
        return Counter(ready=counts.ready, leased=counts.leased, done=counts.done_total)

    def _queue(self, broker: Broker, name: str) -> Queue:
        return broker.queues.put(name, queue_settings()).result().view.queue


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    given: dict[str, Any] = {
        "data": str(tmp_path),
        "push": PushSettings(scan_ms=60 * SECOND, retry_ms=50),
        "server": ServerSettings(drain_ms=50),
    }
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
        given["store"] = StoreSettings(url=url)
    settings = Settings(**given)
    migrate(settings)
    return settings


def test_a_delivery_is_pushed_as_soon_as_it_is_sent(settings: Settings, shop: HttpBackend):
    node = Node(settings, shop)
    try:
        node.broker.start_pushing()
        for number in range(3):
            node.deliver("out", f"/{number}")
        shop.wait_for(3)
    finally:
        node.broker.close()

    assert shop.targets == ["/0", "/1", "/2"]


def test_a_started_pusher_retries_a_failure(settings: Settings, shop: HttpBackend):
    node = Node(settings, shop)
    try:
        node.broker.start_pushing()
        shop.answer(500)
        node.deliver("out", "/a")
        shop.wait_for(2)
        shop.answer(200)
        until(lambda: node.states("out")["done"] == 1)
    finally:
        node.broker.close()


def test_a_stop_finishes_answered_requests_and_releases_the_rest(
    settings: Settings, shop: HttpBackend
):
    node = Node(settings, shop)
    try:
        node.broker.start_pushing()
        node.deliver("quick", "/quick")
        until(lambda: node.states("quick")["done"] == 1)
        shop.hold()
        node.deliver("slow", "/slow")
        shop.wait_for(2)
    finally:
        node.broker.close()

    after = Node(settings, shop)
    try:
        found = after.states("slow")
        assert (found["ready"], found["leased"]) == (1, 0)
        browse = after.broker.messages.browse
        page = browse("slow", State.READY, limit=10, after=None).result()
        [message] = page.views
        assert message.message.attempts == 0
    finally:
        after.broker.close()


def test_a_node_with_pushing_disabled_pushes_nothing(settings: Settings, shop: HttpBackend):
    import dataclasses

    node = Node(dataclasses.replace(settings, push=PushSettings(deliver=False)), shop)
    try:
        node.broker.start_pushing()
        node.deliver("out", "/a")
        assert node.states("out")["ready"] == 1
    finally:
        node.broker.close()

    assert shop.seen == []


def test_starting_or_stopping_twice_is_harmless(settings: Settings, shop: HttpBackend):
    node = Node(settings, shop)
    try:
        node.broker.start_pushing()
        first = node.broker._pushing
        node.broker.start_pushing()
        assert node.broker._pushing is first
        node.deliver("out", "/a")
        shop.wait_for(1)
        assert first is not None
        first.stop()
    finally:
        node.broker.close()

    assert shop.targets == ["/a"]
