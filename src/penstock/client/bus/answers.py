"""What is told of notifications, topics and events, as records.  Instants are datetimes in UTC."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from penstock.domain.message.lifecycle import State
from penstock.domain.topic import Dispatch


class Recorded(msgspec.Struct, frozen=True):
    id: str
    is_duplicate: bool = False
    due_at: datetime | None = None
    future_user_token: str | None = None


class Notification(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A notification, live or from history."""

    id: str
    queue: str
    state: State
    sent_at: datetime
    due_at: datetime | None = None  # the date it was recorded for, or moved to
    next_due_at: datetime | None = None  # when it is tried again
    body: Any = None
    kind: str | None = None
    tags: tuple[str, ...] = ()
    user_token: str | None = None
    future_user_token: str | None = None
    attributes: dict[str, str] = {}
    attempts: int = 0
    failures: int = 0
    leased_by: str | None = None
    leased_until: datetime | None = None
    last_error: str | None = None
    reason: str | None = None
    finished_at: datetime | None = None


class NotificationPage(msgspec.Struct, frozen=True):
    notifications: list[Notification]
    next: str | None = None


class Subscription(msgspec.Struct, frozen=True):
    topic: str
    name: str
    queue: str
    kinds: tuple[str, ...]
    dispatch: Dispatch
    created_at: datetime


class Topic(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    created_at: datetime
    published: int = 0
    unmatched: int = 0
    subscriptions: list[Subscription] = []


class TopicPage(msgspec.Struct, frozen=True):
    topics: list[Topic]
    next: str | None = None


class Published(msgspec.Struct, frozen=True):
    id: str  # of the event; its messages have ids of their own
    messages: int
    duplicates: int = 0
