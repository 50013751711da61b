"""Notifications as an application uses them: `app.notifications("billing")`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack

import msgspec

from penstock.client.answers import Acted
from penstock.client.asking import ask, ask_async, look
from penstock.client.bus_answers import Notification, NotificationPage, Recorded
from penstock.client.current import Current
from penstock.client.foreign import write_foreign
from penstock.client.listener import Listener, ListenerSettings
from penstock.client.notification_asks import ChangeIt, Find, Past, Remove, RemoveAll, Tags
from penstock.client.options import JobOptions, Settled, instant
from penstock.domain import notification
from penstock.domain.draft import Draft, check_instant
from penstock.domain.errors import InvalidRequest
from penstock.domain.ids import ID_DIGITS, uuid7
from penstock.domain.moments import moment_of
from penstock.domain.notification import FUTURE_TOKEN, USER_TOKEN, Change
from penstock.wiring import own_dice

if TYPE_CHECKING:
    from penstock.client.app import Penstock

F = TypeVar("F", bound=Callable[..., Any])
Which = Literal["future", "leased", "live"]

_encoder = msgspec.json.Encoder(enc_hook=write_foreign)
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
        settled, draft = self._draft(body, kind, user_token, options)
        [sent] = await self._app.put_async(settled, [draft])
        return _recorded(sent.id, sent.is_duplicate, draft)

    def find(
        self,
        *,
        tag: str | None = None,
        tag1: str | None = None,
        tag2: str | None = None,
        which: Which = "live",
        due_from: datetime | None = None,
        due_before: datetime | None = None,
        everywhere: bool = False,
    ) -> Iterator[Notification]:
        """Those that have not ended, as they were recorded; `everywhere`: of all queues."""
        tags = self._tags(tag, tag1, tag2, everywhere)
        if which not in ("future", "leased", "live"):
            raise InvalidRequest("which is future, leased or live")

        def page(cursor: str | None) -> NotificationPage:
            wanted = Find(
                tags,
                which=which,
                due_from=due_from,
                due_before=due_before,
                limit=100,
                cursor=cursor,
            )
            return look(self._app.backing, wanted)

        return _pages(page)

    def past(
        self,
        *,
        tag: str | None = None,
        tag1: str | None = None,
        tag2: str | None = None,
        from_at: datetime | None = None,
        to_at: datetime | None = None,
        everywhere: bool = False,
    ) -> Iterator[Notification]:
        """Those that have ended, newest first; `from_at <= finished_at < to_at`."""
        tags = self._tags(tag, tag1, tag2, everywhere)

        def page(cursor: str | None) -> NotificationPage:
            wanted = Past(tags, from_at=from_at, to_at=to_at, limit=100, cursor=cursor)
            return look(self._app.backing, wanted)

        return _pages(page)

    def move(self, notification_id: str, due_at: datetime, *, tx: object = None) -> Acted:
        """Another date, as long as nobody has claimed it."""
        return self.change(notification_id, due_at=due_at, tx=tx)

    def change(
        self,
        notification_id: str,
        *,
        due_at: datetime | None = None,
        body: object = msgspec.UNSET,
        tags: Sequence[str] | None = None,
        kind: str | None = None,
        tx: object = None,
    ) -> Acted:
        """What is not given stays.  Raises WrongState once somebody has claimed it."""
        wanted = _change(due_at, body, tags, kind)
        return ask(self._app.backing, ChangeIt(notification_id, wanted), tx)

    async def change_async(
        self,
        notification_id: str,
        *,
        due_at: datetime | None = None,
        body: object = msgspec.UNSET,
        tags: Sequence[str] | None = None,
        kind: str | None = None,
        tx: object = None,
    ) -> Acted:
        wanted = _change(due_at, body, tags, kind)
        return await ask_async(self._app.backing, ChangeIt(notification_id, wanted), tx)

    def remove(self, notification_id: str, *, tx: object = None) -> Acted:
        """It will not be handled.  Raises WrongState while somebody is at it."""
        return ask(self._app.backing, Remove(notification_id), tx)

    async def remove_async(self, notification_id: str, *, tx: object = None) -> Acted:
        return await ask_async(self._app.backing, Remove(notification_id), tx)

    def remove_all(
        self,
        *,
        tag: str | None = None,
        tag1: str | None = None,
        tag2: str | None = None,
        everywhere: bool = False,
        tx: object = None,
    ) -> int:
        """All in line with these tags, in one transaction; how many they were."""
        tags = self._tags(tag, tag1, tag2, everywhere)
        return ask(self._app.backing, RemoveAll(tags), tx)

    async def remove_all_async(
        self,
        *,
        tag: str | None = None,
        tag1: str | None = None,
        tag2: str | None = None,
        everywhere: bool = False,
        tx: object = None,
    ) -> int:
        tags = self._tags(tag, tag1, tag2, everywhere)
        return await ask_async(self._app.backing, RemoveAll(tags), tx)

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

    def _tags(self, tag: str | None, tag1: str | None, tag2: str | None, everywhere: bool) -> Tags:
        queue = None if everywhere else self.queue
        return Tags(queue=queue, tag=tag, tag1=tag1, tag2=tag2)


def json_of(body: object) -> str:
    """Any value that msgspec can write; raises InvalidRequest."""
    try:
        return _encoder.encode(body).decode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidRequest(f"the body cannot be kept as JSON: {error}") from None


def _pages(page: Callable[[str | None], NotificationPage]) -> Iterator[Notification]:
    cursor: str | None = None
    while True:
        found = page(cursor)
        yield from found.notifications
        cursor = found.next
        if cursor is None:
            return


def _change(
    due_at: datetime | None, body: object, tags: Sequence[str] | None, kind: str | None
) -> Change:
    if isinstance(tags, str):
        raise InvalidRequest("tags takes a sequence of texts, not one text")
    return Change(
        due_at=None if due_at is None else instant("due_at", due_at),
        body=None if body is msgspec.UNSET else json_of(body),
        tags=None if tags is None else tuple(tags),
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
