"""Topics and subscriptions, and the transaction in which events become messages."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import msgspec

from penstock.domain.bus.subscription import (
    DEFAULTS,
    Dispatch,
    Subscription,
    SubscriptionSettings,
)
from penstock.domain.bus.topic import PLAIN, NodeQueue, TakenKey, Topic, TopicSettings
from penstock.domain.errors import PenstockError, QueueExists, QueueNotFound
from penstock.domain.limits import DAY
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.lifecycle import Message
from penstock.domain.queue.queue import Queue
from penstock.ports.store import Sent
from penstock.store.database import Row
from penstock.store.entities.entity import SqlEntity, reader
from penstock.store.verbs.lock_order import LockOrder
from penstock.store.verbs.message_changes import MessageChanges
from penstock.store.verbs.sends import Sends
from penstock.store.verbs.transaction_state import TransactionState, json_list
from penstock.store.verbs.transfers import NO_PLACE, Transfers

_subscription = reader(Subscription)
_topic_settings = lru_cache(maxsize=1_024)(msgspec.json.Decoder(TopicSettings).decode)


class SqlTopics(SqlEntity):
    def __init__(
        self, transaction: TransactionState, changes: MessageChanges, sends: Sends
    ) -> None:
        super().__init__(transaction)
        self._sends = sends
        self._lock_order = LockOrder(transaction)
        self._transfers = Transfers(transaction, changes)

    def add(
        self, name: str, *, now: int, settings: TopicSettings = PLAIN, revision: int = 0
    ) -> bool:
        params = {
            "name": name,
            "now": now,
            "settings": _text(settings),
            "revision": revision,
        }
        return bool(self._db.rows("topics.add", params))

    def change(self, topic_no: int, settings: TopicSettings, *, revision: int) -> None:
        params = {"topic_no": topic_no, "settings": _text(settings), "revision": revision}
        self._db.run("topics.change", params)

    def touch(self, topic_no: int, *, revision: int) -> None:
        self._db.run("topics.touch", {"topic_no": topic_no, "revision": revision})

    def find(self, name: str) -> Topic | None:
        rows = self._db.rows("topics.by_name", {"name": name})
        return _topic(rows[0]) if rows else None

    def page(self, *, prefix: str, after: str, limit: int) -> list[Topic]:
        params = {"prefix": prefix, "after": after, "limit": limit}
        return list(map(_topic, self._db.rows("topics.page", params)))

    def remove(self, topic_no: int) -> None:
        for part in ("remove_subscriptions", "remove_counters", "remove"):
            self._db.run(f"topics.{part}", {"topic_no": topic_no})

    def subscribe(
        self,
        topic_no: int,
        name: str,
        *,
        queue_no: int,
        kinds: Sequence[str],
        dispatch: Dispatch,
        now: int,
        settings: SubscriptionSettings = DEFAULTS,
        shares_queue: bool = False,
    ) -> bool:
        before = self.subscription(topic_no, name)
        params = {
            "topic_no": topic_no,
            "name": name,
            "queue_no": queue_no,
            "kinds": msgspec.json.encode(list(kinds)).decode(),
            "dispatch": dispatch.value,
            "now": now,
            "settings": _text(settings),
            "is_shared": int(shares_queue),
        }
        if not self._db.rows("topics.subscribe", params):
            raise QueueExists("the queue of that name belongs to another subscription")
        return before is None

    def unsubscribe(self, subscription_no: int) -> None:
        self._db.run("topics.unsubscribe", {"subscription_no": subscription_no})

    def subscriptions(self, topic_no: int) -> list[Subscription]:
        rows = self._db.rows("topics.subscriptions", {"topic_no": topic_no}, conditions="")
        return list(map(_subscription, rows))

    def subscription(self, topic_no: int, name: str) -> Subscription | None:
        rows = self._db.rows(
            "topics.subscriptions",
            {"topic_no": topic_no, "name": name},
            conditions=self._db.text("topics.of_name"),
        )
        return _subscription(rows[0]) if rows else None

    def all_subscriptions(self, *, after: tuple[str, str], limit: int) -> list[Subscription]:
        params = {"after_topic": after[0], "after_name": after[1], "limit": limit}
        return list(map(_subscription, self._db.rows("topics.all_subscriptions", params)))

    def with_endpoints(self) -> list[Subscription]:
        return list(map(_subscription, self._db.rows("topics.with_endpoints")))

    def number_of_subscriptions(self, topic_no: int) -> int:
        [(number,)] = self._db.rows("topics.number_of", {"topic_no": topic_no})
        return int(number)

    def to_publish(self, name: str, *, now: int) -> Topic | None:
        if self._db.is_shared:  # lock order: see store/verbs/lock_order.py
            self._transaction.partitions.ensure(now // DAY)
        rows = self._db.rows("topics.to_publish", {"name": name})
        return _topic(rows[0]) if rows else None

    def number(self, topic_no: int, *, count: int) -> int:
        [(last,)] = self._db.rows("topics.number", {"topic_no": topic_no, "count": count})
        return int(last)

    def take_key(self, topic_no: int, taken: TakenKey, *, until_at: int, now: int) -> TakenKey:
        # The keys of a topic are kept beside those of queues, under its negative number.
        owner = -topic_no
        keys = json_list([(owner, taken.key)])
        self._db.post("dedup.free", {"keys": keys, "now": now})
        row = (owner, taken.key, taken.event_id, taken.number, until_at)
        if [taken.event_id] == [found[0] for found in self._db.insert("dedup.take", [row])]:
            return taken
        [(_, _, event_id, number)] = self._db.rows("dedup.known", {"keys": keys})
        return TakenKey(taken.key, event_id, int(number))

    def queues_by_numbers(self, queue_nos: set[int]) -> dict[int, Queue]:
        self._transaction.load_queues(queue_nos)
        found: dict[int, Queue] = {}
        for no in queue_nos:
            with suppress(QueueNotFound):
                found[no] = self._transaction.queue(no)
        return found

    def publish(
        self, topic_no: int, new: Sequence[NewMessage], *, events: int, unmatched: int
    ) -> list[Sent | PenstockError]:
        sent: list[Sent | PenstockError] = []
        if new:
            self._sends.lock(new)
            sent = self._sends.send(new)
        params = {
            "topic_no": topic_no,
            "stripe": self._transaction.counter_rows.number,
            "published": events,
            "unmatched": unmatched,
        }
        self._db.run("topics.count", params)
        return sent

    def add_node(self, queue_no: int, *, subscription_no: int, node: str) -> None:
        params = {"queue_no": queue_no, "subscription_no": subscription_no, "node": node}
        self._db.run("topics.add_node", params)

    def node_queues(self) -> list[tuple[NodeQueue, Subscription | None]]:
        return [_node_queue(*row) for row in self._db.rows("topics.node_queues")]

    def forget_nodes(self) -> int:
        return self._db.run("topics.forget_nodes")

    def hand_over(self, queue_no: int, *, to: int, limit: int, now: int) -> int:
        def ready(lock: str) -> list[Message]:
            return self._transfers.ordinary(
                queue_no, limit=limit, before_no=NO_PLACE, now=now, lock=lock
            )

        found = self._lock_order.lock_to_move(queue_no, ready, to=to, now=now)
        self._transfers.bring(found, to=to, now=now)
        return len(found)


def _topic(row: Row) -> Topic:
    topic_no, name, created_at, published, unmatched, settings, revision = row
    counts = int(published), int(unmatched)
    return Topic(topic_no, name, created_at, *counts, _topic_settings(settings), int(revision))


def _text(settings: TopicSettings | SubscriptionSettings) -> str:
    return msgspec.json.encode(settings).decode()


def _node_queue(
    queue_no: int, subscription_no: int, node: str, topic: str | None, *rest: Any
) -> tuple[NodeQueue, Subscription | None]:
    own = NodeQueue(queue_no, subscription_no, node)
    return own, None if topic is None else _subscription((subscription_no, topic, *rest))
