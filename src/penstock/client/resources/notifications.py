"""Notifications: messages due at a set time, found again by their tags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TypedDict, Unpack

import msgspec

from penstock.api import notifications
from penstock.api.messages import Acted, SendOptions
from penstock.api.notifications import (
    ByTags,
    Change,
    Find,
    NewNotification,
    Notification,
    Recorded,
    SearchPastNotifications,
    Which,
)
from penstock.client.resources.resource import ResourceClient, items_of


class Tags(TypedDict, total=False):
    """Both tags, one tag in its place, or one tag in either place; in one queue or in all."""

    queue: str | None
    tag: str | None
    tag1: str | None
    tag2: str | None


class FindFilter(Tags, total=False):
    which: Which  # unclaimed, due or not; claimed; or both
    due_from: datetime | None  # inclusive
    due_before: datetime | None  # exclusive


class PastFilter(Tags, total=False):
    from_at: datetime | None  # inclusive
    to_at: datetime | None  # exclusive


class NotificationClient(ResourceClient):
    def record(
        self,
        queue: str,
        body: object,
        *,
        user_token: str | None = None,
        **options: Unpack[SendOptions],
    ) -> Recorded:
        """Record a notification; returns when it is on disk.

        With a `dedup_key`, the client repeats the request if the answer is lost.
        """
        wanted = NewNotification(body=body, queue=queue, user_token=user_token, **options)
        return self._request(notifications.RECORD, wanted)

    def find(self, *, page_size: int = 100, **wanted: Unpack[FindFilter]) -> Iterator[Notification]:
        """Find notifications that have not ended, in the order they were recorded, page by page."""
        return items_of(
            lambda cursor: self.page(limit=page_size, cursor=cursor, **wanted),
            lambda page: page.notifications,
        )

    def page(
        self, *, limit: int = 100, cursor: str | None = None, **wanted: Unpack[FindFilter]
    ) -> notifications.Notifications:
        query = Find(limit=limit, cursor=cursor, **wanted)
        return self._request(notifications.FIND, query=query)

    def past(
        self, *, limit: int = 100, cursor: str | None = None, **wanted: Unpack[PastFilter]
    ) -> notifications.Notifications:
        """Find ended notifications, newest first; `from_at <= finished_at < to_at`."""
        query = SearchPastNotifications(limit=limit, cursor=cursor, **wanted)
        return self._request(notifications.PAST, query=query)

    def get(self, notification_id: str) -> Notification:
        """Return a notification, live or from history; raises MessageNotFound."""
        return self._request(notifications.GET, id=notification_id)

    def move(self, notification_id: str, due_at: datetime) -> Acted:
        """Change when an unclaimed notification is due."""
        return self.change(notification_id, due_at=due_at)

    def change(
        self,
        notification_id: str,
        *,
        due_at: datetime | None = None,
        body: object = msgspec.UNSET,
        tags: Sequence[str] | None = None,
        kind: str | None = None,
    ) -> Acted:
        """Change the given fields only."""
        given = None if tags is None else tuple(tags)
        wanted = Change(due_at=due_at, body=body, tags=given, kind=kind)
        return self._request(notifications.CHANGE, wanted, id=notification_id)

    def remove(self, notification_id: str) -> Acted:
        """Cancel a notification.  Raises WrongState while a worker is handling it."""
        return self._request(notifications.REMOVE, id=notification_id)

    def remove_all(self, **tags: Unpack[Tags]) -> int:
        """Cancel all unclaimed notifications with these tags; returns their number."""
        return self._request(notifications.REMOVE_ALL, query=ByTags(**tags)).cancelled
