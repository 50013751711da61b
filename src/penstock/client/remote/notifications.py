"""Notifications of a server elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Literal, TypedDict, Unpack
from urllib.parse import quote, urlencode

import msgspec

from penstock.api.messages import Acted
from penstock.api.sends import Draft, SendOptions
from penstock.client.bus.answers import Notification, NotificationPage, Recorded
from penstock.client.remote.topics import fields_of
from penstock.client.remote.transport import Transport

_recorded = msgspec.json.Decoder(Recorded)
_notification = msgspec.json.Decoder(Notification)
_page = msgspec.json.Decoder(NotificationPage)
_acted = msgspec.json.Decoder(Acted)

Which = Literal["future", "leased", "live"]


class _Cancelled(msgspec.Struct):
    cancelled: int


_cancelled = msgspec.json.Decoder(_Cancelled)


class Tags(TypedDict, total=False):
    """Both tags, one of them in its place, or one in either place; in one queue or in all."""

    queue: str | None
    tag: str | None
    tag1: str | None
    tag2: str | None


class Wanted(Tags, total=False):
    which: Which  # in line, due or not; held by somebody; or both
    due_from: datetime | None  # inclusive
    due_before: datetime | None  # exclusive


class PastWanted(Tags, total=False):
    from_at: datetime | None
    to_at: datetime | None


class RemoteNotifications:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def record(
        self,
        queue: str,
        body: object,
        *,
        user_token: str | None = None,
        **options: Unpack[SendOptions],
    ) -> Recorded:
        """Returns when it is on disk.  With a `dedup_key` a lost answer is asked for again."""
        draft = Draft(body, **options)
        told = fields_of(draft) | {"queue": queue}
        if user_token is not None:
            told["user_token"] = user_token
        is_safe = draft.dedup_key is not None
        return _recorded.decode(
            self._transport.call("POST", "/v1/notifications", body=told, is_safe=is_safe).body
        )

    def find(self, *, page_size: int = 100, **wanted: Unpack[Wanted]) -> Iterator[Notification]:
        """Those that have not ended, as they were recorded; page by page as far as one reads."""
        cursor: str | None = None
        while True:
            page = self.page(limit=page_size, cursor=cursor, **wanted)
            yield from page.notifications
            cursor = page.next
            if cursor is None:
                return

    def page(
        self, *, limit: int = 100, cursor: str | None = None, **wanted: Unpack[Wanted]
    ) -> NotificationPage:
        query = _query({**wanted, "limit": limit, "cursor": cursor})
        return _page.decode(self._transport.call("GET", f"/v1/notifications?{query}").body)

    def past(
        self, *, limit: int = 100, cursor: str | None = None, **wanted: Unpack[PastWanted]
    ) -> NotificationPage:
        """Those that have ended, newest first; `from_at <= finished_at < to_at`."""
        query = _query({**wanted, "limit": limit, "cursor": cursor})
        return _page.decode(self._transport.call("GET", f"/v1/notifications/history?{query}").body)

    def get(self, notification_id: str) -> Notification:
        """Live, or from history; raises MessageNotFound."""
        return _notification.decode(self._transport.call("GET", _path(notification_id)).body)

    def move(self, notification_id: str, due_at: datetime) -> Acted:
        """Another date, as long as nobody has claimed it."""
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
        """What is not given stays."""
        given = {"due_at": due_at, "tags": tags, "kind": kind}
        told: dict[str, object] = {n: value for n, value in given.items() if value is not None}
        if body is not msgspec.UNSET:
            told["body"] = body
        answer = self._transport.call("PATCH", _path(notification_id), body=told, is_safe=True)
        return _acted.decode(answer.body)

    def remove(self, notification_id: str) -> Acted:
        """Raises WrongState while somebody is at it."""
        return _acted.decode(self._transport.call("DELETE", _path(notification_id)).body)

    def remove_all(self, **tags: Unpack[Tags]) -> int:
        """All in line with these tags; how many they were."""
        answer = self._transport.call("DELETE", f"/v1/notifications?{_query({**tags})}")
        return _cancelled.decode(answer.body).cancelled


def _query(wanted: dict[str, object]) -> str:
    names = {"from_at": "from", "to_at": "to"}
    return urlencode(
        {
            names.get(name, name): _text(value) if isinstance(value, datetime) else value
            for name, value in wanted.items()
            if value is not None
        }
    )


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")


def _path(notification_id: str) -> str:
    return f"/v1/notifications/{quote(notification_id, safe='')}"
