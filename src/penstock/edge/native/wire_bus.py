"""The JSON of notifications, topics and events."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from penstock.domain.datetimes import parse_instant
from penstock.domain.message import notification
from penstock.domain.message.history import Ending
from penstock.domain.message.lifecycle import State
from penstock.domain.message.notification import FUTURE_TOKEN, OWN, USER_TOKEN, Change
from penstock.domain.queue.queue import QueueSettings
from penstock.domain.topic import Dispatch, Subscription, Topic
from penstock.edge.instants import to_text
from penstock.edge.native import wire_in
from penstock.edge.native.wire_in import DraftIn
from penstock.services.messages import MessageView

_anything = msgspec.json.Decoder()


class NewNotificationIn(DraftIn, forbid_unknown_fields=True, kw_only=True):
    queue: str
    user_token: str | None = None


class ChangeIn(msgspec.Struct, forbid_unknown_fields=True):
    due_at: int | str | None = None
    body: Annotated[msgspec.Raw, Meta(extra_json_schema={})] | msgspec.UnsetType = msgspec.UNSET
    tags: tuple[str, ...] | None = None
    kind: str | None = None

    def change(self) -> Change:
        body = None
        if self.body is not msgspec.UNSET:
            body = DraftIn(body=self.body).draft().body
        return Change(
            due_at=None if self.due_at is None else parse_instant("due_at", self.due_at),
            body=body,
            tags=self.tags,
            kind=self.kind,
        )


class RecordedOut(msgspec.Struct):
    id: str
    is_duplicate: bool
    due_at: str
    future_user_token: str | None


class NotificationOut(msgspec.Struct, omit_defaults=True):
    """A notification, live or ended; what it does not have is left out."""

    id: str
    queue: str
    state: State
    sent_at: str
    due_at: str | None = None
    next_due_at: str | None = None
    body: msgspec.Raw | None = None
    kind: str | None = None
    tags: list[str] = []
    user_token: str | None = None
    future_user_token: str | None = None
    attributes: dict[str, str] | None = None
    attempts: int = 0
    failures: int = 0
    leased_by: str | None = None
    leased_until: str | None = None
    last_error: str | None = None
    reason: str | None = None
    finished_at: str | None = None


class NotificationsOut(msgspec.Struct):
    notifications: list[NotificationOut]
    next: str | None


class SubscribeIn(msgspec.Struct, forbid_unknown_fields=True):
    kinds: tuple[str, ...] = ()
    dispatch: Dispatch = Dispatch.SHARED
    settings: QueueSettings | None = None


class SubscriptionOut(msgspec.Struct):
    topic: str
    name: str
    queue: str
    kinds: list[str]
    dispatch: Dispatch
    created_at: str


class TopicOut(msgspec.Struct):
    name: str
    created_at: str
    published: int
    unmatched: int
    subscriptions: list[SubscriptionOut] | msgspec.UnsetType = msgspec.UNSET


class TopicsOut(msgspec.Struct):
    topics: list[TopicOut]
    next: str | None


class EventIn(DraftIn, forbid_unknown_fields=True, kw_only=True):
    node: str | None = None


class EventsIn(msgspec.Struct, forbid_unknown_fields=True):
    events: list[DraftIn]
    node: str | None = None


class PublishedOut(msgspec.Struct):
    id: str
    messages: int
    duplicates: int


class AllPublishedOut(msgspec.Struct):
    events: list[PublishedOut]


def notification_out(view: MessageView) -> NotificationOut:
    m = view.message
    state = m.outcome if isinstance(m, Ending) else m.state
    out = NotificationOut(m.id, view.queue, state, to_text(m.sent_at))
    out.kind, out.attempts, out.failures = m.kind, m.attempts, m.failures
    out.tags = [tag for tag in (m.tag1, m.tag2) if tag is not None]
    out.leased_by, out.last_error, out.reason = m.leased_by, m.last_error, m.reason
    planned = _add_content(out, view)
    if isinstance(m, Ending):
        out.finished_at = to_text(m.finished_at)
    elif m.state is State.LEASED:
        out.leased_until = to_text(m.due_at)
    elif planned is not None and planned != m.due_at:
        out.next_due_at = to_text(m.due_at)
    if planned is not None:
        out.due_at = to_text(planned)
    elif not isinstance(m, Ending) and m.state is not State.LEASED:
        out.due_at = to_text(m.due_at)
    return out


def _add_content(out: NotificationOut, view: MessageView) -> int | None:
    """Returns the date it was recorded for."""
    if view.content is None:
        return None
    attributes = view.content.attributes or {}
    out.body = msgspec.Raw(view.content.body.encode())
    out.user_token = attributes.get(USER_TOKEN)
    out.future_user_token = attributes.get(FUTURE_TOKEN)
    out.attributes = {n: text for n, text in attributes.items() if n not in OWN} or None
    return notification.planned_at(attributes)


def topic_out(topic: Topic, subscriptions: list[Subscription] | None = None) -> TopicOut:
    out = TopicOut(topic.name, to_text(topic.created_at), topic.published, topic.unmatched)
    if subscriptions is not None:
        out.subscriptions = [subscription_out(s) for s in subscriptions]
    return out


def subscription_out(s: Subscription) -> SubscriptionOut:
    return SubscriptionOut(
        s.topic, s.name, s.queue, list(s.kinds), s.dispatch, to_text(s.created_at)
    )


_event = msgspec.json.Decoder(EventIn)
_events = msgspec.json.Decoder(EventsIn)
_notification = msgspec.json.Decoder(NewNotificationIn)
_change = msgspec.json.Decoder(ChangeIn)
_subscribe = msgspec.json.Decoder(SubscribeIn)


def read_event(body: bytes) -> EventIn:
    return wire_in.decode(_event, body)


def read_events(body: bytes) -> EventsIn:
    return wire_in.decode(_events, body)


def read_notification(body: bytes) -> NewNotificationIn:
    return wire_in.decode(_notification, body)


def read_change(body: bytes) -> Any:
    return wire_in.decode(_change, body).change()


def read_subscribe(body: bytes) -> SubscribeIn:
    return wire_in.decode(_subscribe, body)
