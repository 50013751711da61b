"""Protocols of a store: topics with their subscriptions, and messages by tag."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from penstock.domain.bus.subscription import Dispatch, Subscription, SubscriptionSettings
from penstock.domain.bus.topic import NodeQueue, TakenKey, Topic, TopicSettings
from penstock.domain.errors import PenstockError
from penstock.domain.limits import MAX_INSTANT
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.lifecycle import Content, Message, State
from penstock.domain.queue.queue import Queue

if TYPE_CHECKING:
    from penstock.ports.store import Sent

Rewrite = Callable[[Message, Content, Queue], NewMessage]


class TopicStore(Protocol):
    def add(self, name: str, *, now: int, settings: TopicSettings = ..., revision: int = 0) -> bool:
        """Create it unless it exists; returns whether it is new."""
        ...

    def change(self, topic_no: int, settings: TopicSettings, *, revision: int) -> None: ...
    def touch(self, topic_no: int, *, revision: int) -> None:
        """Give it another revision, and lock it, because its subscriptions change."""
        ...

    def find(self, name: str) -> Topic | None: ...
    def page(self, *, prefix: str, after: str, limit: int) -> list[Topic]: ...
    def remove(self, topic_no: int) -> None:
        """Remove it with its subscriptions; their queues stay."""
        ...

    def subscribe(
        self,
        topic_no: int,
        name: str,
        *,
        queue_no: int,
        kinds: Sequence[str],
        dispatch: Dispatch,
        now: int,
        settings: SubscriptionSettings = ...,
        shares_queue: bool = False,
    ) -> bool:
        """Create or change it; returns whether it is new.

        Raises QueueExists for the queue of another one, unless it may share its queue.
        """
        ...

    def unsubscribe(self, subscription_no: int) -> None: ...
    def subscriptions(self, topic_no: int) -> list[Subscription]:
        """By name; a subscription ends when its queue is removed."""
        ...

    def subscription(self, topic_no: int, name: str) -> Subscription | None: ...
    def all_subscriptions(self, *, after: tuple[str, str], limit: int) -> list[Subscription]:
        """Of all topics, by the names of topic and subscription."""
        ...

    def with_endpoints(self) -> list[Subscription]:
        """Those whose events are pushed to a URL."""
        ...

    def number_of_subscriptions(self, topic_no: int) -> int: ...
    def to_publish(self, name: str, *, now: int) -> Topic | None:
        """Must be the first statement of a transaction that publishes.  Without its counters."""
        ...

    def number(self, topic_no: int, *, count: int) -> int:
        """Number events of an ordered topic; returns the last number.  Locks the topic."""
        ...

    def take_key(self, topic_no: int, taken: TakenKey, *, until_at: int, now: int) -> TakenKey:
        """Take a dedup key of the topic, or return who has it.  The caller has locked the topic."""
        ...

    def queues_by_numbers(self, queue_nos: set[int]) -> dict[int, Queue]:
        """Many queues at once, without those that were removed."""
        ...

    def publish(
        self, topic_no: int, new: Sequence[NewMessage], *, events: int, unmatched: int
    ) -> list[Sent | PenstockError]:
        """Store the messages of some events, and update the counters of their topic."""
        ...

    def add_node(self, queue_no: int, *, subscription_no: int, node: str) -> None: ...
    def node_queues(self) -> list[tuple[NodeQueue, Subscription | None]]:
        """All queues of single workers, with their subscriptions if these still exist."""
        ...

    def forget_nodes(self) -> int:
        """Remove the records of queues that were removed."""
        ...

    def hand_over(self, queue_no: int, *, to: int, limit: int, now: int) -> int:
        """Move ready messages to another queue, in order; returns how many."""
        ...


class Tagged(msgspec.Struct, frozen=True, kw_only=True):
    """Live messages in the order in which they were sent.  At least one tag is required.

    `due_from <= due_at < due_before`, for queued messages: a leased one has been due already.
    """

    tag: str | None = None  # matches either tag
    tag1: str | None = None
    tag2: str | None = None
    queue_no: int | None = None
    states: tuple[State, ...] = (State.WAITING, State.READY, State.LEASED)
    due_from: int = 0
    due_before: int = MAX_INSTANT + 1
    after_no: int = 0  # cursor: the number of the last one seen
    limit: int = 100


class TaggedMessages(Protocol):
    """Messages by tag: find, change while queued, cancel."""

    def find(self, wanted: Tagged) -> list[Message]: ...

    def contents(self, messages: Sequence[Message]) -> dict[int, Content]:
        """By message_no, with one query for each day."""
        ...

    def cancel(self, wanted: Tagged, *, queue_no: int, reason: str | None, now: int) -> int:
        """Cancel queued messages of one queue, up to the limit; returns how many."""
        ...

    def rewrite(self, message_id: str, change: Rewrite, *, now: int) -> Message:
        """Apply a pure change to a message and its content; raises MessageNotFound."""
        ...
