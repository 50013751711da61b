"""A transaction that is tried again gives its topic another revision.

What the first try had cached under its own revision is then out of date.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.domain.bus.subscription import DEFAULTS
from penstock.domain.errors import PenstockError
from penstock.domain.queue.queue import Queue
from penstock.outbound.dice import SystemDice
from penstock.ports.store import Session
from penstock.ports.unit_of_work import Work
from penstock.services.directory import Directory
from penstock.services.topics import TopicService
from tests.store.driver import StoreDriver


class Undone(PenstockError):
    """The transaction is rolled back, as before a retry."""


@pytest.fixture
def backend() -> str:
    """What services do in a transaction does not depend on the store."""
    return "sqlite"


@pytest.fixture
def topics(store_driver: StoreDriver, queue: Queue) -> TopicService:
    store, clock = store_driver.store, store_driver.clock
    topics = TopicService(store, clock, SystemDice(), Directory(store, clock))
    topics.subscribe("news", "audit").result()
    return topics


@pytest.mark.parametrize(
    "begin",
    [
        lambda topics: topics.change("news", lambda settings: settings),
        lambda topics: topics.subscribe("news", "audit"),
        lambda topics: topics.subscribe_queue("news", "mail", "q1", DEFAULTS),
        lambda topics: topics.change_subscription("news", "audit", lambda settings: settings),
        lambda topics: topics.unsubscribe("news", "audit"),
        lambda topics: topics.put("new"),
    ],
    ids=["change", "subscribe", "subscribe_queue", "change_subscription", "unsubscribe", "put"],
)
def test_a_retried_change_has_a_new_revision(
    store_driver: StoreDriver, topics: TopicService, begin: Callable[[TopicService], Work[Any]]
):
    work = begin(topics)
    seen: list[int] = []

    def attempt(session: Session) -> None:
        work.within(session)
        [topic] = session.topics.page(prefix="", after="", limit=1)
        seen.append(topic.revision)
        raise Undone

    for _ in range(2):
        with pytest.raises(Undone):
            store_driver.write(attempt)

    assert seen[0] != seen[1]
