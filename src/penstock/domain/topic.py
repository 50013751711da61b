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
from enum import StrEnum
from fnmatch import fnmatchcase

import msgspec

from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import NUL
from penstock.domain.message.draft import ID_CHARS, Draft
from penstock.domain.queue.queue import check_name

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,77}")
_BETWEEN = "."
NODE_QUEUE_SEPARATOR = "--"
_MAX_STICKY = 80 - len(NODE_QUEUE_SEPARATOR) - ID_CHARS

MAX_PATTERNS = 50
MAX_PATTERN_CHARS = 256
MAX_SUBSCRIPTIONS = 1_000  # of one topic
MAX_FAN_OUT = 10_000  # messages of one publish: one transaction must not block others

# Attributes of the messages that events become.
TOPIC = "event.topic"
EVENT_ID = "event.id"
OWN = frozenset({TOPIC, EVENT_ID})


class Dispatch(StrEnum):
    SHARED = "shared"  # to any worker that claims
    STICKY = "sticky"  # to the worker that published it, as long as it is alive


class Topic(msgspec.Struct, frozen=True):
    topic_no: int
    name: str
    created_at: int
    published: int = 0  # events
    unmatched: int = 0  # … that no subscription matched


class Subscription(msgspec.Struct, frozen=True):
    subscription_no: int
    topic: str
    name: str
    queue_no: int
    queue: str
    kinds: tuple[str, ...]  # shell-style patterns; empty: every event
    dispatch: Dispatch
    created_at: int


class NodeQueue(msgspec.Struct, frozen=True):
    """The queue of events that one worker published and must handle itself."""

    queue_no: int
    subscription_no: int
    node: str


class Published(msgspec.Struct, frozen=True):
    id: str  # of the event; its messages have ids of their own
    messages: int  # how many were sent
    duplicates: int = 0  # how many were not sent because their dedup key was taken


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


def check_kinds(kinds: tuple[str, ...]) -> tuple[str, ...]:
    if len(kinds) > MAX_PATTERNS:
        raise InvalidRequest(f"a subscription takes at most {MAX_PATTERNS} patterns of kinds")
    if any(not 0 < len(kind) <= MAX_PATTERN_CHARS or NUL in kind for kind in kinds):
        raise InvalidRequest(
            f"a pattern of kinds has 1 to {MAX_PATTERN_CHARS} characters, none of them NUL"
        )
    return kinds


def wants(subscription: Subscription, kind: str | None) -> bool:
    """Whether it matches; an event without a kind matches only subscriptions to everything."""
    if not subscription.kinds:
        return True
    return kind is not None and any(fnmatchcase(kind, pattern) for pattern in subscription.kinds)


def check_event(draft: Draft) -> Draft:
    if draft.attributes and not OWN.isdisjoint(draft.attributes):
        raise InvalidRequest(f"attributes named {TOPIC} and {EVENT_ID} are reserved for the bus")
    return draft


def as_event(draft: Draft, *, topic: str, event_id: str) -> Draft:
    """The draft of each of the event's messages, labelled with the topic and the event's id."""
    own = {TOPIC: topic, EVENT_ID: event_id}
    return msgspec.structs.replace(draft, attributes={**(draft.attributes or {}), **own})


def check_fan_out(messages: int) -> None:
    if messages > MAX_FAN_OUT:
        raise InvalidRequest(
            f"these events would become {messages} messages; one publish takes {MAX_FAN_OUT}"
        )
