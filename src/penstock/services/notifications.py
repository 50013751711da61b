"""Notifications: messages for a set time, found by their tags."""

from __future__ import annotations

import msgspec

from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import Limits
from penstock.domain.message import lifecycle, notification
from penstock.domain.message.draft import ID_DIGITS, Draft, check_delay, check_instant, uuid7
from penstock.domain.message.history import HistoryFilter, check_filter
from penstock.domain.message.lifecycle import QUEUED, Message, State
from penstock.domain.message.notification import Change
from penstock.domain.message.selection import count_fitting
from penstock.ports.clock import Clock, Dice
from penstock.ports.store import Session, Store
from penstock.ports.topics import Tagged
from penstock.ports.unit_of_work import Work, read, write
from penstock.services.message_views import EndedPage
from penstock.services.messages import MessageService, MessageView

CHUNK = 500  # messages per transaction when many are removed
FUTURE = (State.WAITING, State.READY)  # including due ones that are not claimed yet
LEASED = (State.LEASED,)
LIVE = (*FUTURE, *LEASED)


class NotificationFilter(Tagged, frozen=True, kw_only=True):
    """Which notifications: by one or both tags, in the queue of this name or in all."""

    queue: str | None = None


class NotificationPage(msgspec.Struct, frozen=True):
    views: list[MessageView]
    next_no: int | None = None  # where the next page begins; None: this is the last


class RemoveResult(msgspec.Struct, frozen=True):
    cancelled: int
    is_done: bool


class NotificationService:
    def __init__(
        self, store: Store, clock: Clock, dice: Dice, limits: Limits, messages: MessageService
    ) -> None:
        self._store = store
        self._clock = clock
        self._dice = dice
        self._limits = limits
        self._messages = messages

    def plan(self, draft: Draft, *, user_token: str | None = None) -> Draft:
        """Add due date and tokens to the draft; without a date it is due at once.

        Raises InvalidRequest.
        """
        now = self._clock.now()
        if draft.due_at is not None and draft.delay_ms is not None:
            raise InvalidRequest("give due_at or delay_ms, not both")
        due_at = draft.due_at
        if due_at is None:
            due_at = now + check_delay("delay_ms", draft.delay_ms or 0)
        return notification.as_notification(
            draft,
            due_at=check_instant("due_at", due_at),
            user_token=user_token,
            future_token=uuid7(now, self._dice.digits(ID_DIGITS)),
        )

    def find(self, wanted: NotificationFilter) -> Work[NotificationPage]:
        """Live notifications, in the order in which they were recorded; raises QueueNotFound."""
        self._check(wanted)
        max_bytes = self._limits.max_answer_bytes
        return read(self._store, lambda session: _page(session, wanted, max_bytes))

    def past(self, wanted: HistoryFilter) -> Work[EndedPage]:
        """Ended notifications, newest first, with their content if it is still stored."""
        check_filter(wanted, max_limit=self._limits.max_claim)
        max_bytes = self._limits.max_answer_bytes

        def do(session: Session) -> EndedPage:
            found = session.history.search(wanted)
            endings = found[: count_fitting((ending.size for ending in found), max_bytes)]
            views = [MessageView(e.queue, e, session.history.content(e)) for e in endings]
            is_last = len(endings) == len(found) < wanted.limit
            before = None if is_last else (endings[-1].finished_at, endings[-1].history_no)
            return EndedPage(views, before)

        return read(self._store, do)

    def change(self, message_id: str, wanted: Change) -> Work[Message]:
        """Change date, body, kind or tags of an unclaimed notification.

        Raises InvalidRequest; MessageNotFound, WrongState and TooLarge when it runs.
        """
        if wanted == Change():
            raise InvalidRequest("nothing to change: give due_at, body, tags or kind")
        if wanted.due_at is not None:
            check_instant("due_at", wanted.due_at)
        now, limits = self._clock.now(), self._limits
        return write(
            self._store,
            lambda session: session.tagged.rewrite(
                message_id,
                lambda m, content, queue: notification.change(
                    m, content, queue, wanted, now=now, limits=limits
                ),
                now=now,
            ),
        )

    def remove(self, message_id: str, *, reason: str | None = None) -> Work[Message]:
        """Cancel it; raises WrongState while a worker is handling it."""
        now, short = self._clock.now(), self._messages.shorten(reason)
        return write(
            self._store,
            lambda session: session.messages.change(
                message_id, lambda m, _: lifecycle.cancel(m, reason=short), now=now
            ),
        )

    def remove_some(
        self, wanted: NotificationFilter, *, reason: str | None = None
    ) -> Work[RemoveResult]:
        """Cancel a chunk of the unclaimed notifications; repeat until it is done."""
        now, short = self._clock.now(), self._messages.shorten(reason)
        unclaimed = msgspec.structs.replace(wanted, states=FUTURE, after_no=0, limit=CHUNK)
        self._check(unclaimed)

        def do(session: Session) -> RemoveResult:
            tagged = _with_queue_no(session, unclaimed)
            found = session.tagged.find(tagged)
            if not found:
                return RemoveResult(0, is_done=True)
            # One queue at a time, because of the lock order (store/verbs/lock_order.py).
            queue_no = found[0].queue_no
            cancelled = session.tagged.cancel(tagged, queue_no=queue_no, reason=short, now=now)
            return RemoveResult(cancelled, is_done=False)

        return write(self._store, do)

    def _check(self, wanted: NotificationFilter) -> None:
        check_tags(wanted.tag, wanted.tag1, wanted.tag2)
        if not 1 <= wanted.limit <= self._limits.max_claim:
            raise InvalidRequest(f"limit must be from 1 to {self._limits.max_claim}")


def _with_queue_no(session: Session, wanted: NotificationFilter) -> Tagged:
    if wanted.queue is None:
        return wanted
    return msgspec.structs.replace(wanted, queue_no=session.queues.named(wanted.queue).queue_no)


def _page(session: Session, wanted: NotificationFilter, max_bytes: int) -> NotificationPage:
    matching = session.tagged.find(_with_queue_no(session, wanted))
    found = matching[: count_fitting((message.size for message in matching), max_bytes)]
    contents = session.tagged.contents(found)
    views = []
    for message in found:
        content = contents.get(message.message_no)
        if message.state not in QUEUED:
            # Its due_at is the end of the lease, so use the recorded date.
            planned = notification.planned_at(content.attributes if content else None)
            if planned is not None and not wanted.due_from <= planned < wanted.due_before:
                continue
        name = session.queues.get(message.queue_no).name
        views.append(MessageView(name, message, content))
    is_last = len(found) == len(matching) < wanted.limit
    return NotificationPage(views, None if is_last else found[-1].message_no)


def check_tags(tag: str | None, tag1: str | None, tag2: str | None) -> None:
    if tag is None and tag1 is None and tag2 is None:
        raise InvalidRequest("notifications are found by their tags: name tag1, tag2 or tag")
    if tag is not None and (tag1 is not None or tag2 is not None):
        raise InvalidRequest("give tag, or tag1 and tag2, not both")
