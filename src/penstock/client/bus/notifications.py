"""Notifications as an application uses them: `app.notifications("billing")`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, get_args

import msgspec

from penstock.api.messages import Acted
from penstock.api.notifications import (
    CHANGE,
    FIND,
    PAST,
    REMOVE,
    REMOVE_ALL,
    ByTags,
    Change,
    Find,
    Notification,
    Notifications,
    Recorded,
    SearchPastNotifications,
    Which,
)
from penstock.api.operation import Operation
from penstock.client.bus.listener import ListenerSettings, QueueListener
from penstock.client.bus.notification_options import (
    ChangeOptions,
    FindOptions,
    PastOptions,
    RecordOptions,
    TagOptions,
)
from penstock.client.channel import Channel
from penstock.client.jobs.current import Current
from penstock.client.jobs.options import ResolvedOptions, instant, texts
from penstock.client.resources.resource import items_of
from penstock.client.values.json_values import json_of
from penstock.domain.datetimes import moment_of
from penstock.domain.errors import InvalidRequest, QueueNotFound
from penstock.domain.message import notification
from penstock.domain.message.draft import ID_DIGITS, Draft, check_instant, uuid7
from penstock.domain.message.notification import FUTURE_TOKEN, USER_TOKEN
from penstock.services.notifications import check_tags
from penstock.wiring.broker import own_dice

if TYPE_CHECKING:
    from penstock.client.app import Penstock

F = TypeVar("F", bound=Callable[..., Any])
Q = TypeVar("Q", Find, SearchPastNotifications)

_PAGE_SIZE = 100
_NOTHING = Notifications(notifications=[], next=None)
_dice = own_dice()


class DueNotification(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler can see of a notification besides its body."""

    id: str
    queue: str
    kind: str | None
    due_at: datetime | None  # the instant it was recorded for
    tags: tuple[str, ...]
    user_token: str | None  # of the caller that recorded it
    future_user_token: str | None  # for what this handler does
    attempts: int


class NotificationQueue:
    """Rejections are raised as PenstockErrors; `tx` is the caller's own transaction."""

    def __init__(self, app: Penstock, queue: str) -> None:
        self._app = app
        self.queue = queue

    def record(self, body: object, **options: Unpack[RecordOptions]) -> Recorded:
        """Record a notification for `due_at`, or after a `delay`; `tags` find it again."""
        self._app.backend_for(options.get("tx"))
        resolved, draft = self._draft(body, options)
        [sent] = self._app.put(resolved, [draft])
        return _recorded_notification(sent.id, sent.is_duplicate, draft)

    async def record_async(self, body: object, **options: Unpack[RecordOptions]) -> Recorded:
        await self._app.backend_for_async(options.get("tx"))
        resolved, draft = self._draft(body, options)
        [sent] = await self._app.put_async(resolved, [draft])
        return _recorded_notification(sent.id, sent.is_duplicate, draft)

    def find(self, *, tx: object = None, **wanted: Unpack[FindOptions]) -> Iterator[Notification]:
        """Find notifications that have not ended, in the order they were recorded.

        With `tx` they are read in the caller's transaction, including its uncommitted changes.
        """
        query = self._find(**wanted)
        return items_of(lambda cursor: self._page(FIND, query, cursor, tx), _notifications)

    def find_async(
        self, *, tx: object = None, **wanted: Unpack[FindOptions]
    ) -> AsyncIterator[Notification]:
        query = self._find(**wanted)
        return _pages_async(lambda cursor: self._page_async(FIND, query, cursor, tx))

    def past(self, *, tx: object = None, **wanted: Unpack[PastOptions]) -> Iterator[Notification]:
        """Find ended notifications, newest first; `from_at <= finished_at < to_at`."""
        query = self._past(**wanted)
        return items_of(lambda cursor: self._page(PAST, query, cursor, tx), _notifications)

    def past_async(
        self, *, tx: object = None, **wanted: Unpack[PastOptions]
    ) -> AsyncIterator[Notification]:
        query = self._past(**wanted)
        return _pages_async(lambda cursor: self._page_async(PAST, query, cursor, tx))

    def move(self, notification_id: str, due_at: datetime, *, tx: object = None) -> Acted:
        """Change when an unclaimed notification is due."""
        return self.change(notification_id, due_at=due_at, tx=tx)

    async def move_async(
        self, notification_id: str, due_at: datetime, *, tx: object = None
    ) -> Acted:
        return await self.change_async(notification_id, due_at=due_at, tx=tx)

    def change(
        self, notification_id: str, *, tx: object = None, **changes: Unpack[ChangeOptions]
    ) -> Acted:
        """Change the given fields only.  Raises WrongState once a worker has claimed it."""
        wanted = _change(**changes)
        return self._channel(tx).request(CHANGE, wanted, tx=tx, id=notification_id)

    async def change_async(
        self, notification_id: str, *, tx: object = None, **changes: Unpack[ChangeOptions]
    ) -> Acted:
        wanted, channel = _change(**changes), await self._channel_async(tx)
        return await channel.request_async(CHANGE, wanted, tx=tx, id=notification_id)

    def remove(self, notification_id: str, *, tx: object = None) -> Acted:
        """Cancel a notification.  Raises WrongState while a worker is handling it."""
        return self._channel(tx).request(REMOVE, tx=tx, id=notification_id)

    async def remove_async(self, notification_id: str, *, tx: object = None) -> Acted:
        channel = await self._channel_async(tx)
        return await channel.request_async(REMOVE, tx=tx, id=notification_id)

    def remove_all(self, *, tx: object = None, **tags: Unpack[TagOptions]) -> int:
        """Cancel all unclaimed notifications with these tags; returns their number.

        Without `tx` this takes several transactions, so that other writers do not wait long.
        """
        query = self._tags(**tags)
        try:
            return self._channel(tx).request(REMOVE_ALL, query=query, tx=tx).cancelled
        except QueueNotFound:
            return 0

    async def remove_all_async(self, *, tx: object = None, **tags: Unpack[TagOptions]) -> int:
        query, channel = self._tags(**tags), await self._channel_async(tx)
        try:
            return (await channel.request_async(REMOVE_ALL, query=query, tx=tx)).cancelled
        except QueueNotFound:
            return 0

    def handler(self, *kinds: str, **settings: Unpack[ListenerSettings]) -> Callable[[F], F]:
        """Make a function the handler of this queue's notifications, of all or some kinds.

        `kinds` are patterns (invoice.*); the first matching handler is called.
        """

        def decorate(function: F) -> F:
            listener = QueueListener(
                function,
                kinds=kinds,
                about=_due,
                clock=lambda: self._app.clock,
                settings=settings,
            )
            self._app.handlers.listen(self.queue, listener)
            self._app.queue_at_least(self.queue, max_attempts=listener.max_attempts)
            return function

        return decorate

    def _draft(self, body: object, options: RecordOptions) -> tuple[ResolvedOptions, Draft]:
        kind, user_token = options.pop("kind", None), options.pop("user_token", None)
        resolved = ResolvedOptions(queue=self.queue).merged(options)
        now = self._app.clock.now()
        draft = msgspec.structs.replace(resolved.draft, kind=kind, body=json_of(body))
        at = draft.due_at if draft.due_at is not None else now + (draft.delay_ms or 0)
        token = uuid7(now, _dice.digits(ID_DIGITS))
        planned = notification.as_notification(
            draft,
            due_at=check_instant("due_at", at),
            user_token=user_token,
            future_token=token,
        )
        return resolved, planned

    def _find(
        self,
        *,
        which: Which = "live",
        due_from: datetime | None = None,
        due_before: datetime | None = None,
        **tags: Unpack[TagOptions],
    ) -> Find:
        if which not in get_args(Which):
            raise InvalidRequest(f"which must be future, leased or live, not {which!r}")
        return Find(
            which=which,
            due_from=due_from,
            due_before=due_before,
            limit=_PAGE_SIZE,
            **self._by_tags(**tags),
        )

    def _past(
        self,
        *,
        from_at: datetime | None = None,
        to_at: datetime | None = None,
        **tags: Unpack[TagOptions],
    ) -> SearchPastNotifications:
        tagged = self._by_tags(**tags)
        return SearchPastNotifications(from_at=from_at, to_at=to_at, limit=_PAGE_SIZE, **tagged)

    def _tags(self, **tags: Unpack[TagOptions]) -> ByTags:
        return ByTags(**self._by_tags(**tags))

    def _by_tags(
        self,
        *,
        tag: str | None = None,
        tag1: str | None = None,
        tag2: str | None = None,
        everywhere: bool = False,
    ) -> dict[str, Any]:
        check_tags(tag, tag1, tag2)  # now, not when the first page is read
        queue = None if everywhere else self.queue
        return {"queue": queue, "tag": tag, "tag1": tag1, "tag2": tag2}

    def _page(
        self, operation: Operation[Notifications], query: Q, cursor: str | None, tx: object
    ) -> Notifications:
        page = msgspec.structs.replace(query, cursor=cursor)
        try:
            return self._channel(tx).request(operation, query=page, tx=tx)
        except QueueNotFound:  # no notification has been recorded yet
            return _NOTHING

    async def _page_async(
        self, operation: Operation[Notifications], query: Q, cursor: str | None, tx: object
    ) -> Notifications:
        channel = await self._channel_async(tx)
        page = msgspec.structs.replace(query, cursor=cursor)
        try:
            return await channel.request_async(operation, query=page, tx=tx)
        except QueueNotFound:
            return _NOTHING

    def _channel(self, tx: object) -> Channel:
        return self._app.backend_for(tx).channel

    async def _channel_async(self, tx: object) -> Channel:
        return (await self._app.backend_for_async(tx)).channel


def _notifications(page: Notifications) -> Sequence[Notification]:
    return page.notifications


async def _pages_async(
    page: Callable[[str | None], Awaitable[Notifications]],
) -> AsyncIterator[Notification]:
    cursor: str | None = None
    while True:
        found = await page(cursor)
        for one in found.notifications:
            yield one
        cursor = found.next
        if cursor is None:
            return


def _change(
    *,
    due_at: datetime | None = None,
    body: object = msgspec.UNSET,
    tags: Sequence[str] | None = None,
    kind: str | None = None,
) -> Change:
    return Change(
        due_at=None if due_at is None else instant("due_at", due_at),
        body=msgspec.UNSET if body is msgspec.UNSET else msgspec.Raw(json_of(body).encode()),
        tags=None if tags is None else texts("tags", tags),
        kind=kind,
    )


def _recorded_notification(message_id: str, is_duplicate: bool, draft: Draft) -> Recorded:
    assert draft.due_at is not None  # it is planned
    return Recorded(
        id=message_id,
        is_duplicate=is_duplicate,
        due_at=moment_of(draft.due_at),
        future_user_token=None if is_duplicate else (draft.attributes or {})[FUTURE_TOKEN],
    )


def _due(job: Current) -> DueNotification:
    planned = notification.planned_at(job.attributes)
    return DueNotification(
        id=job.id,
        queue=job.queue,
        kind=job.kind,
        due_at=None if planned is None else moment_of(planned),
        tags=job.tags,
        user_token=job.attributes.get(USER_TOKEN),
        future_user_token=job.attributes.get(FUTURE_TOKEN),
        attempts=job.attempts,
    )
