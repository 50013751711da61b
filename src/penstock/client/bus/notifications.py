"""Notifications as an application uses them: `app.notifications("billing")`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import msgspec

from penstock.api.messages import Acted
from penstock.client.bus.answers import Notification, NotificationPage, Recorded
from penstock.client.bus.bodies import json_of
from penstock.client.bus.listener import Listener, ListenerSettings
from penstock.client.bus.notification_options import (
    ChangeOptions,
    FindOptions,
    PastOptions,
    TagOptions,
    Which,
)
from penstock.client.bus.notification_requests import ChangeIt, Find, Past, Remove, RemoveAll, Tags
from penstock.client.jobs.current import Current
from penstock.client.jobs.options import JobOptions, Settled, instant, texts
from penstock.client.request_kinds import Ask, ask, ask_async, look, look_async
from penstock.domain.datetimes import moment_of
from penstock.domain.errors import InvalidRequest
from penstock.domain.message import notification
from penstock.domain.message.draft import Draft, check_instant
from penstock.domain.message.ids import ID_DIGITS, uuid7
from penstock.domain.message.notification import FUTURE_TOKEN, USER_TOKEN, Change
from penstock.wiring.broker import own_dice

if TYPE_CHECKING:
    from penstock.client.app import Penstock

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
Page = Callable[[str | None], Ask[NotificationPage]]

_PAGE_SIZE = 100
_dice = own_dice()


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler is told about a notification beside its body."""

    id: str
    queue: str
    kind: str | None
    due_at: datetime | None  # the date it was recorded for
    tags: tuple[str, ...]
    user_token: str | None  # of whoever recorded it
    future_user_token: str | None  # for what this handler does
    attempts: int


class NotificationQueue:
    """Refusals are raised as PenstockErrors; `tx` is the caller's own transaction."""

    def __init__(self, app: Penstock, queue: str) -> None:
        self._app = app
        self.queue = queue

    def record(
        self,
        body: object,
        *,
        kind: str | None = None,
        user_token: str | None = None,
        **options: Unpack[JobOptions],
    ) -> Recorded:
        """At `due_at`, or after a `delay`; found again by its `tags`."""
        self._app.backing_for(options.get("tx"))
        settled, draft = self._draft(body, kind, user_token, options)
        [sent] = self._app.put(settled, [draft])
        return _recorded(sent.id, sent.is_duplicate, draft)

    async def record_async(
        self,
        body: object,
        *,
        kind: str | None = None,
        user_token: str | None = None,
        **options: Unpack[JobOptions],
    ) -> Recorded:
        await self._app.backing_for_async(options.get("tx"))
        settled, draft = self._draft(body, kind, user_token, options)
        [sent] = await self._app.put_async(settled, [draft])
        return _recorded(sent.id, sent.is_duplicate, draft)

    def find(self, *, tx: object = None, **wanted: Unpack[FindOptions]) -> Iterator[Notification]:
        """Notifications that have not ended, in the order they were recorded.

        With `tx` they are read in the caller's transaction, with its uncommitted changes.
        """
        page = self._find_page(**wanted)
        return _pages(lambda cursor: look(self._app.backing_for(tx), page(cursor), tx))

    def find_async(
        self, *, tx: object = None, **wanted: Unpack[FindOptions]
    ) -> AsyncIterator[Notification]:
        page = self._find_page(**wanted)
        return _pages_async(lambda cursor: self._look_async(page(cursor), tx))

    def past(self, *, tx: object = None, **wanted: Unpack[PastOptions]) -> Iterator[Notification]:
        """Notifications that have ended, newest first; `from_at <= finished_at < to_at`."""
        page = self._past_page(**wanted)
        return _pages(lambda cursor: look(self._app.backing_for(tx), page(cursor), tx))

    def past_async(
        self, *, tx: object = None, **wanted: Unpack[PastOptions]
    ) -> AsyncIterator[Notification]:
        page = self._past_page(**wanted)
        return _pages_async(lambda cursor: self._look_async(page(cursor), tx))

    def move(self, notification_id: str, due_at: datetime, *, tx: object = None) -> Acted:
        """Change the date of a notification that is not claimed yet."""
        return self.change(notification_id, due_at=due_at, tx=tx)

    async def move_async(
        self, notification_id: str, due_at: datetime, *, tx: object = None
    ) -> Acted:
        return await self.change_async(notification_id, due_at=due_at, tx=tx)

    def change(
        self, notification_id: str, *, tx: object = None, **changes: Unpack[ChangeOptions]
    ) -> Acted:
        """Fields that are not given stay.  Raises WrongState once a worker has claimed it."""
        wanted = ChangeIt(notification_id, _change(**changes))
        return ask(self._app.backing_for(tx), wanted, tx)

    async def change_async(
        self, notification_id: str, *, tx: object = None, **changes: Unpack[ChangeOptions]
    ) -> Acted:
        return await self._ask_async(ChangeIt(notification_id, _change(**changes)), tx)

    def remove(self, notification_id: str, *, tx: object = None) -> Acted:
        """Cancel it.  Raises WrongState while a worker is handling it."""
        return ask(self._app.backing_for(tx), Remove(notification_id), tx)

    async def remove_async(self, notification_id: str, *, tx: object = None) -> Acted:
        return await self._ask_async(Remove(notification_id), tx)

    def remove_all(self, *, tx: object = None, **tags: Unpack[TagOptions]) -> int:
        """Cancel all unclaimed notifications with these tags in one transaction; their number."""
        return ask(self._app.backing_for(tx), RemoveAll(self._tags(**tags)), tx)

    async def remove_all_async(self, *, tx: object = None, **tags: Unpack[TagOptions]) -> int:
        return await self._ask_async(RemoveAll(self._tags(**tags)), tx)

    def handler(self, *kinds: str, **settings: Unpack[ListenerSettings]) -> Callable[[F], F]:
        """Make a function the handler of this queue's notifications, all or those of some kinds.

        `kinds` are patterns (invoice.*); the first handler that fits is called.
        """

        def decorate(function: F) -> F:
            listener = Listener(
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

    def _draft(
        self,
        body: object,
        kind: str | None,
        user_token: str | None,
        options: JobOptions,
    ) -> tuple[Settled, Draft]:
        settled = Settled(queue=self.queue).merged(options)
        now = self._app.clock.now()
        draft = msgspec.structs.replace(settled.draft, kind=kind, body=json_of(body))
        at = draft.due_at if draft.due_at is not None else now + (draft.delay_ms or 0)
        token = uuid7(now, _dice.digits(ID_DIGITS))
        planned = notification.planned(
            draft,
            due_at=check_instant("due_at", at),
            user_token=user_token,
            future_token=token,
        )
        return settled, planned

    def _find_page(
        self,
        *,
        which: Which = "live",
        due_from: datetime | None = None,
        due_before: datetime | None = None,
        **tags: Unpack[TagOptions],
    ) -> Page:
        if which not in ("future", "leased", "live"):
            raise InvalidRequest(f"which is future, leased or live, not {which!r}")
        given = self._tags(**tags)
        return lambda cursor: Find(
            given,
            which=which,
            due_from=due_from,
            due_before=due_before,
            limit=_PAGE_SIZE,
            cursor=cursor,
        )

    def _past_page(
        self,
        *,
        from_at: datetime | None = None,
        to_at: datetime | None = None,
        **tags: Unpack[TagOptions],
    ) -> Page:
        given = self._tags(**tags)
        return lambda cursor: Past(
            given, from_at=from_at, to_at=to_at, limit=_PAGE_SIZE, cursor=cursor
        )

    def _tags(
        self,
        *,
        tag: str | None = None,
        tag1: str | None = None,
        tag2: str | None = None,
        everywhere: bool = False,
    ) -> Tags:
        return Tags(queue=None if everywhere else self.queue, tag=tag, tag1=tag1, tag2=tag2)

    async def _ask_async(self, what: Ask[T], tx: object) -> T:
        return await ask_async(await self._app.backing_for_async(tx), what, tx)

    async def _look_async(self, what: Ask[T], tx: object) -> T:
        return await look_async(await self._app.backing_for_async(tx), what, tx)


def _pages(page: Callable[[str | None], NotificationPage]) -> Iterator[Notification]:
    cursor: str | None = None
    while True:
        found = page(cursor)
        yield from found.notifications
        cursor = found.next
        if cursor is None:
            return


async def _pages_async(
    page: Callable[[str | None], Awaitable[NotificationPage]],
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
        body=None if body is msgspec.UNSET else json_of(body),
        tags=None if tags is None else texts("tags", tags),
        kind=kind,
    )


def _recorded(message_id: str, is_duplicate: bool, draft: Draft) -> Recorded:
    attributes = draft.attributes or {}
    return Recorded(
        message_id,
        is_duplicate,
        _moment(draft.due_at),
        None if is_duplicate else attributes[FUTURE_TOKEN],
    )


def _due(job: Current) -> Due:
    planned = notification.planned_at(job.attributes)
    return Due(
        id=job.id,
        queue=job.queue,
        kind=job.kind,
        due_at=_moment(planned),
        tags=job.tags,
        user_token=job.attributes.get(USER_TOKEN),
        future_user_token=job.attributes.get(FUTURE_TOKEN),
        attempts=job.attempts,
    )


def _moment(ms: int | None) -> datetime | None:
    return None if ms is None else moment_of(ms)
