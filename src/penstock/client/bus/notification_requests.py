"""What an application asks about its notifications."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from penstock.api.messages import Acted
from penstock.client.bus.answers import Notification, NotificationPage
from penstock.client.remote.server import Remote
from penstock.client.request_kinds import Ask
from penstock.domain.datetimes import instant_of, moment_of
from penstock.domain.errors import QueueNotFound
from penstock.domain.limits import MAX_INSTANT
from penstock.domain.message import notification
from penstock.domain.message.history import Ending, HistoryFilter
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.message.notification import FUTURE_TOKEN, OWN, USER_TOKEN, Change
from penstock.ports.store import Session
from penstock.services import notifications
from penstock.services.messages import MessageView
from penstock.services.notifications import FUTURE, HELD, LIVE
from penstock.wiring.broker import Broker

_NO_QUEUE = -1  # a number that no queue has
_WHICH = {"future": FUTURE, "leased": HELD, "live": LIVE}


class Tags(msgspec.Struct, frozen=True, kw_only=True):
    """As the services have them, but the queue by its name."""

    queue: str | None = None
    tag: str | None = None
    tag1: str | None = None
    tag2: str | None = None

    def __post_init__(self) -> None:
        """Before a server is asked: it looks at the queue first, which may not exist yet."""
        notifications.check_tags(self.tag, self.tag1, self.tag2)

    def named(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("tag", "tag1", "tag2")}

    def queue_no(self, session: Session) -> int | None:
        """None: all queues.  A queue that does not exist yet has no notifications."""
        if self.queue is None:
            return None
        found = session.queues.find(self.queue)
        return _NO_QUEUE if found is None else found.queue_no


class Find(Ask[NotificationPage]):
    def __init__(
        self,
        tags: Tags,
        *,
        which: str,
        due_from: datetime | None,
        due_before: datetime | None,
        limit: int,
        cursor: str | None,
    ) -> None:
        self._tags = tags
        self._which = which
        self._due = (due_from, due_before)
        self._limit = limit
        self._cursor = cursor

    def in_store(self, broker: Broker) -> Callable[[Session], NotificationPage]:
        due_from, due_before = self._due

        def do(session: Session) -> NotificationPage:
            wanted = notifications.Wanted(
                queue_no=self._tags.queue_no(session),
                states=_WHICH[self._which],
                due_from=0 if due_from is None else to_ms(due_from),
                due_before=MAX_INSTANT + 1 if due_before is None else to_ms(due_before),
                after_no=int(self._cursor or 0),
                limit=self._limit,
                **self._tags.named(),
            )
            found = broker.notifications.finding(wanted)(session)
            following = None if found.next_no is None else str(found.next_no)
            return NotificationPage([_told(view) for view in found.views], following)

        return do

    def over_http(self, remote: Remote) -> NotificationPage:
        due_from, due_before = self._due
        which: Any = self._which
        try:
            return remote.notifications.page(
                limit=self._limit,
                cursor=self._cursor,
                which=which,
                due_from=due_from,
                due_before=due_before,
                queue=self._tags.queue,
                **self._tags.named(),
            )
        except QueueNotFound:
            return NotificationPage([])


class Past(Ask[NotificationPage]):
    def __init__(
        self,
        tags: Tags,
        *,
        from_at: datetime | None,
        to_at: datetime | None,
        limit: int,
        cursor: str | None,
    ) -> None:
        self._tags = tags
        self._ended = (from_at, to_at)
        self._limit = limit
        self._cursor = cursor

    def in_store(self, broker: Broker) -> Callable[[Session], NotificationPage]:
        from_at, to_at = self._ended
        before = None if self._cursor is None else tuple(map(int, self._cursor.split(",")))
        wanted = HistoryFilter(
            queue=self._tags.queue,
            from_at=0 if from_at is None else to_ms(from_at),
            to_at=2**62 if to_at is None else to_ms(to_at),
            before=before,  # type: ignore[arg-type]
            limit=self._limit,
            **self._tags.named(),
        )
        search = broker.notifications.searching(wanted)

        def do(session: Session) -> NotificationPage:
            page = search(session)
            following = None if page.before is None else ",".join(map(str, page.before))
            return NotificationPage([_told(view) for view in page.views], following)

        return do

    def over_http(self, remote: Remote) -> NotificationPage:
        from_at, to_at = self._ended
        return remote.notifications.past(
            limit=self._limit,
            cursor=self._cursor,
            from_at=from_at,
            to_at=to_at,
            queue=self._tags.queue,
            **self._tags.named(),
        )


class ChangeIt(Ask[Acted]):
    def __init__(self, notification_id: str, wanted: Change) -> None:
        self._id = notification_id
        self._wanted = wanted

    def in_store(self, broker: Broker) -> Callable[[Session], Acted]:
        do = broker.notifications.changing(self._id, self._wanted)
        return lambda session: _acted(do(session))

    def over_http(self, remote: Remote) -> Acted:
        wanted = self._wanted
        body = wanted.body
        return remote.notifications.change(
            self._id,
            due_at=None if wanted.due_at is None else _moment(wanted.due_at),
            body=msgspec.UNSET if body is None else msgspec.Raw(body.encode()),
            tags=wanted.tags,
            kind=wanted.kind,
        )


class Remove(Ask[Acted]):
    def __init__(self, notification_id: str) -> None:
        self._id = notification_id

    def in_store(self, broker: Broker) -> Callable[[Session], Acted]:
        do = broker.notifications.removing(self._id)
        return lambda session: _acted(do(session))

    def over_http(self, remote: Remote) -> Acted:
        return remote.notifications.remove(self._id)


class RemoveAll(Ask[int]):
    def __init__(self, tags: Tags) -> None:
        self._tags = tags

    def in_store(self, broker: Broker) -> Callable[[Session], int]:
        """In one transaction; see `NotificationQueue.remove_all` for chunks."""

        def do(session: Session) -> int:
            return broker.notifications.removing_all(self.wanted(session))(session).cancelled

        return do

    def over_http(self, remote: Remote) -> int:
        try:
            return remote.notifications.remove_all(queue=self._tags.queue, **self._tags.named())
        except QueueNotFound:
            return 0

    def wanted(self, session: Session) -> notifications.Wanted:
        return notifications.Wanted(queue_no=self._tags.queue_no(session), **self._tags.named())


def to_ms(moment: datetime) -> int:
    return instant_of(moment)


def _moment(ms: int) -> datetime:
    return moment_of(ms)


def _acted(message: Message) -> Acted:
    return Acted(message.id, message.state, _moment(message.due_at))


def _told(view: MessageView) -> Notification:
    m = view.message
    attributes = (view.content and view.content.attributes) or {}
    planned = notification.planned_at(attributes)
    fields: dict[str, Any] = {}
    if isinstance(m, Ending):
        state, fields["finished_at"] = m.outcome, _moment(m.finished_at)
    else:
        state = m.state
        if state is State.LEASED:
            fields["leased_until"] = _moment(m.due_at)
        elif planned is None:
            planned = m.due_at
        elif planned != m.due_at:
            fields["next_due_at"] = _moment(m.due_at)
    return Notification(
        id=m.id,
        queue=view.queue,
        state=state,
        sent_at=_moment(m.sent_at),
        due_at=None if planned is None else _moment(planned),
        body=None if view.content is None else msgspec.json.decode(view.content.body),
        kind=m.kind,
        tags=tuple(tag for tag in (m.tag1, m.tag2) if tag is not None),
        user_token=attributes.get(USER_TOKEN),
        future_user_token=attributes.get(FUTURE_TOKEN),
        attributes={name: text for name, text in attributes.items() if name not in OWN},
        attempts=m.attempts,
        failures=m.failures,
        leased_by=m.leased_by,
        last_error=m.last_error,
        reason=m.reason,
        **fields,
    )
