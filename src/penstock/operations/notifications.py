"""Notifications: messages that are due at a set time, found by their tags."""

from __future__ import annotations

from typing import Any

from msgspec import UnsetType

from penstock.api import notifications
from penstock.api.browsing import Page
from penstock.api.messages import Acted
from penstock.api.notifications import (
    ByTags,
    Change,
    Find,
    FindMessages,
    NewNotification,
    Notification,
    Recorded,
    SearchPastNotifications,
)
from penstock.api.queues import Cancelled
from penstock.domain.access.api_key import Role, allow
from penstock.domain.datetimes import parse_instant, read_instant
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import MAX_INSTANT
from penstock.domain.message import notification
from penstock.domain.message.history import HistoryFilter
from penstock.domain.message.notification import FUTURE_TOKEN
from penstock.domain.queue.queue import check_name
from penstock.operations.call import Call, Handlers, allow_search
from penstock.operations.drafts import draft_of, text_of
from penstock.operations.messages import acted_of, allowed_message, check_operator, listed
from penstock.operations.paging import from_cursor, past_page, to_cursor
from penstock.ports.unit_of_work import Steps, Work
from penstock.services.messages import MessageService, MessageView
from penstock.services.notifications import (
    FUTURE,
    LEASED,
    LIVE,
    NotificationFilter,
    NotificationPage,
    NotificationService,
)

_STATES = {"future": FUTURE, "leased": LEASED, "live": LIVE}


class NotificationOperations:
    def __init__(self, service: NotificationService, messages: MessageService) -> None:
        self._notifications = service
        self._messages = messages

    def handlers(self) -> Handlers:
        return {
            notifications.RECORD: self.record,
            notifications.FIND: self.find,
            notifications.REMOVE_ALL: self.remove_all,
            notifications.PAST: self.past,
            notifications.GET: self.get,
            notifications.CHANGE: self.change,
            notifications.REMOVE: self.remove,
            notifications.FIND_MESSAGES: self.find_messages,
        }

    def record(self, call: Call[NewNotification, None]) -> Steps[Recorded]:
        wanted = call.body
        allow(call.caller, Role.PRODUCE, check_name(wanted.queue))
        draft = self._notifications.plan(draft_of(wanted), user_token=wanted.user_token)
        sent = yield from self._messages.send_one(wanted.queue, draft)
        # A duplicate keeps the token of the first message.
        token = None if sent.is_duplicate else (draft.attributes or {})[FUTURE_TOKEN]
        return Recorded(
            id=sent.id,
            is_duplicate=sent.is_duplicate,
            due_at=call.instant(draft.due_at or 0),
            future_user_token=token,
        )

    def find(self, call: Call[None, Find]) -> Work[notifications.Notifications]:
        return self._find(call).map(
            lambda found: notifications.Notifications(
                notifications=[_notification(call, view) for view in found.views],
                next=_next(found),
            )
        )

    def find_messages(self, call: Call[None, FindMessages]) -> Work[Page]:
        return self._find(call).map(
            lambda found: Page(
                messages=[listed(view, call, call.query.preview) for view in found.views],
                next=_next(found),
            )
        )

    def past(self, call: Call[None, SearchPastNotifications]) -> Work[notifications.Notifications]:
        query = call.query
        allow_search(call.caller, query.queue, Role.READ)
        if query.tag is None and query.tag1 is None and query.tag2 is None:
            raise InvalidRequest("notifications are found by their tags: name tag1, tag2 or tag")
        wanted = HistoryFilter(
            queue=None if query.queue is None else check_name(query.queue),
            tag=query.tag,
            tag1=query.tag1,
            tag2=query.tag2,
            **past_page(query, query.from_at, query.to_at),
        )
        return self._notifications.past(wanted).map(
            lambda page: notifications.Notifications(
                notifications=[_notification(call, view) for view in page.views],
                next=None if page.before is None else to_cursor(*page.before),
            )
        )

    def get(self, call: Call[None, None]) -> Steps[Notification]:
        return _notification(call, (yield from allowed_message(self._messages, call, Role.READ)))

    def change(self, call: Call[Change, None]) -> Steps[Acted]:
        given = call.body
        wanted = notification.Change(
            due_at=None if given.due_at is None else parse_instant("due_at", given.due_at),
            body=None if isinstance(given.body, UnsetType) else text_of(given.body),
            tags=given.tags,
            kind=given.kind,
        )
        yield from check_operator(self._messages, call)
        changed = yield from self._notifications.change(call.path["id"], wanted)
        return acted_of(changed, call.instant)

    def remove(self, call: Call[None, None]) -> Steps[Acted]:
        yield from check_operator(self._messages, call)
        removed = yield from self._notifications.remove(call.path["id"])
        return acted_of(removed, call.instant)

    def remove_all(self, call: Call[None, ByTags]) -> Steps[Cancelled]:
        """Cancel in several transactions, so that other requests do not have to wait."""
        allow_search(call.caller, call.query.queue, Role.OPERATE)
        wanted, total = _filter_of(call.query), 0
        while not (removed := (yield from self._notifications.remove_some(wanted))).is_done:
            total += removed.cancelled
        return Cancelled(cancelled=total)

    def _find(self, call: Call[None, Any]) -> Work[NotificationPage]:
        query = call.query
        allow_search(call.caller, query.queue, Role.READ)
        [after_no] = from_cursor(query.cursor, 1) or [0]
        return self._notifications.find(
            _filter_of(
                query,
                states=_STATES[query.which],
                due_from=read_instant("due_from", query.due_from, default=0),
                due_before=read_instant("due_before", query.due_before, default=MAX_INSTANT + 1),
                after_no=after_no,
                limit=query.limit,
            )
        )


def _filter_of(query: ByTags, **more: Any) -> NotificationFilter:
    queue = None if query.queue is None else check_name(query.queue)
    return NotificationFilter(queue=queue, tag=query.tag, tag1=query.tag1, tag2=query.tag2, **more)


def _notification(call: Call[Any, Any], view: MessageView) -> Notification:
    return Notification.of(view.queue, view.message, view.content, call.instant, call.json_value)


def _next(found: NotificationPage) -> str | None:
    return None if found.next_no is None else to_cursor(found.next_no)
