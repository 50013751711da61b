"""Topics, their subscriptions, and the fan-out of events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from penstock.domain.errors import PenstockError
from penstock.domain.message.draft import NewMessage
from penstock.domain.queue.queue import Queue
from penstock.domain.topic import Dispatch, NodeQueue, Subscription, Topic

if TYPE_CHECKING:
    from penstock.ports.store import Sent


class TopicStore(Protocol):
    def add(self, name: str, *, now: int) -> bool:
        """Create it unless it exists; returns whether it is new."""
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
    ) -> bool:
        """Create or change it; returns whether it is new.  Raises QueueExists for a taken queue."""
        ...

    def unsubscribe(self, subscription_no: int) -> None: ...
    def subscriptions(self, topic_no: int) -> list[Subscription]:
        """By name; a subscription ends when its queue is removed."""
        ...

    def subscription(self, topic_no: int, name: str) -> Subscription | None: ...
    def number_of_subscriptions(self, topic_no: int) -> int: ...
    def to_publish(self, name: str, *, now: int) -> Topic | None:
        """Must be the first statement of a transaction that publishes."""
        ...

    def queues_of(self, queue_nos: set[int]) -> dict[int, Queue]:
        """Many queues at once."""
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
