"""Topics and subscriptions: how published events become messages.

    publish ──▶ topic ──┬─ subscription "mailer"  ──▶ queue orders.mailer
                        ├─ subscription "audit"   ──▶ queue orders.audit
                        └─ "eu", kinds order.eu.* ──▶ queue orders.eu

An event is not stored as such: it becomes one message in the queue of each subscription that
matches its kind, all of them or none.  From then on the messages are independent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from penstock.domain.bus.subscription import Dispatch, Subscription
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.draft import ID_CHARS, Draft, check_kind, content_key
from penstock.domain.queue.queue import DedupScope, Ordering, check_name

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,77}")
_BETWEEN = "."
NODE_QUEUE_SEPARATOR = "--"
_MAX_STICKY = 80 - len(NODE_QUEUE_SEPARATOR) - ID_CHARS

MAX_SUBSCRIPTIONS = 1_000  # of one topic
MAX_FAN_OUT = 10_000  # messages of one publish: one transaction must not block others

# Attributes of the messages that events become.
TOPIC = "event.topic"
EVENT_ID = "event.id"
OWN = frozenset({TOPIC, EVENT_ID})


class TopicSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    ordering: Ordering = Ordering.STANDARD  # group: FIFO, and duplicates are dropped by the topic
    dedup_by_content: bool = False
    dedup_scope: DedupScope = DedupScope.QUEUE  # here the topic
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}  # what the SNS API keeps

    @property
    def is_ordered(self) -> bool:
        return self.ordering is Ordering.GROUP


PLAIN = TopicSettings()


class Topic(msgspec.Struct, frozen=True):
    topic_no: int
    name: str
    created_at: int
    published: int = 0  # events
    unmatched: int = 0  # … that no subscription matched
    settings: TopicSettings = PLAIN
    revision: int = 0  # another one after every change of the topic or of a subscription


class NodeQueue(msgspec.Struct, frozen=True):
    """The queue of events that one worker published and must handle itself."""

    queue_no: int
    subscription_no: int
    node: str


class TakenKey(msgspec.Struct, frozen=True):
    """A dedup key of an ordered topic, and the event that has taken it."""

    key: str
    event_id: str
    number: int


class Published(msgspec.Struct, frozen=True):
    id: str  # of the event; its messages have ids of their own
    messages: int  # how many were sent
    duplicates: int = 0  # how many were not sent because their dedup key was taken
    sequence: int | None = None  # its number in an ordered topic


def check_topic(name: str) -> str:
    """Return it, or raise InvalidRequest: a queue name, with room for a subscription's name."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"a topic's name is 1 to 78 letters, digits, '_', '-' or '.', not {name[:100]!r}"
        )
    return name


def queue_name(topic: str, subscription: str) -> str:
    """The queue of a subscription; raises InvalidRequest if the names do not fit."""
    check_topic(topic)
    if not _NAME.fullmatch(subscription):
        raise InvalidRequest(
            "a subscription's name is 1 to 78 letters, digits, '_', '-' or '.', "
            f"not {subscription[:100]!r}"
        )
    name = f"{topic}{_BETWEEN}{subscription}"
    if len(name) > 80:
        raise InvalidRequest("the names of a topic and a subscription have 79 characters together")
    return check_name(name)


def check_own_queue(subscription: Subscription) -> None:
    """Check that the queue was made for this subscription; SNS subscribes any queue."""
    if subscription.queue != f"{subscription.topic}{_BETWEEN}{subscription.name}":
        raise InvalidRequest(
            f"queue {subscription.queue!r} is not the subscription's own; unsubscribe without "
            "with_queue, and remove the queue itself if nothing else uses it"
        )


def node_queue_name(queue: str, node: str) -> str:
    """A worker's own queue beside that of its subscription; raises InvalidRequest."""
    return check_name(f"{queue}{NODE_QUEUE_SEPARATOR}{node}")


def node_queue_names(queues: Iterable[str], node: str) -> list[str]:
    """The same for several queues, without those whose names would be too long."""
    return [node_queue_name(queue, node) for queue in queues if len(queue) <= _MAX_STICKY]


def check_dispatch(queue: str, dispatch: Dispatch) -> None:
    """Check that a worker's id fits behind the queue name of a sticky subscription."""
    if dispatch is Dispatch.STICKY and len(queue) > _MAX_STICKY:
        raise InvalidRequest(
            "the names of a topic and a sticky subscription have "
            f"{_MAX_STICKY - 1} characters together"
        )


def check_event(draft: Draft) -> Draft:
    if draft.attributes and not OWN.isdisjoint(draft.attributes):
        raise InvalidRequest(f"attributes named {TOPIC} and {EVENT_ID} are reserved for the bus")
    check_kind(draft)
    return draft


class GroupMissing(InvalidRequest):
    """An event of an ordered topic has no group."""


class DedupKeyMissing(InvalidRequest):
    """An event of an ordered topic has no dedup key, and none is derived from its body."""


def check_ordered(topic: Topic, draft: Draft) -> None:
    if draft.group is None:
        raise GroupMissing(f"topic {topic.name!r} is ordered by group: an event needs a group")
    if draft.dedup_key is None and not topic.settings.dedup_by_content:
        raise DedupKeyMissing(f"topic {topic.name!r} drops duplicates: an event needs a dedup_key")


def with_dedup_key(draft: Draft) -> Draft:
    if draft.dedup_key is not None:
        return draft
    return msgspec.structs.replace(draft, dedup_key=content_key(draft.body))


def stored_key(scope: DedupScope, draft: Draft) -> str:
    """Its dedup key in an ordered topic: with the group, if groups have separate keys."""
    key = draft.dedup_key or ""
    if scope is DedupScope.GROUP:
        return msgspec.json.encode([draft.group, key]).decode()
    return key


def check_fan_out(messages: int) -> None:
    if messages > MAX_FAN_OUT:
        raise InvalidRequest(
            f"these events would become {messages} messages; one publish takes {MAX_FAN_OUT}"
        )
