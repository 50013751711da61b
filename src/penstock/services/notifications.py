"""What you can ask of notifications: messages for a set time, found again by their tags."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import MAX_INSTANT, Limits
from penstock.domain.message import lifecycle, notification
from penstock.domain.message.answer_size import count_fitting
from penstock.domain.message.draft import Draft, NewMessage, check_delay, check_instant
from penstock.domain.message.history import HistoryFilter, check_filter
from penstock.domain.message.ids import ID_DIGITS, uuid7
from penstock.domain.message.lifecycle import IN_LINE, Message, State
from penstock.domain.message.notification import Change
from penstock.domain.queue.queue import Queue
from penstock.ports.clock import Clock, Dice
from penstock.ports.store import Session, Store
from penstock.ports.tags import Tagged
from penstock.ports.ticket import Ticket
from penstock.services.message_views import EndedPage
from penstock.services.messages import Messages, MessageView

CHUNK = 500  # messages per transaction when many are removed
FUTURE = (State.WAITING, State.READY)  # also those that are due and that nobody has claimed yet
HELD = (State.LEASED,)
LIVE = (*FUTURE, *HELD)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which notifications: by both tags or one of them, in one queue or in all."""

    queue_no: int | None = None
    tag: str | None = None  # in either place
    tag1: str | None = None
    tag2: str | None = None
    states: tuple[State, ...] = LIVE
    due_from: int = 0  # inclusive
    due_before: int = MAX_INSTANT + 1  # exclusive
    after_no: int = 0
    limit: int = 100


class Found(msgspec.Struct, frozen=True):
    views: list[MessageView]
    next_no: int | None = None  # where the next page begins; None: this is the last


class Removed(msgspec.Struct, frozen=True):
    cancelled: int
    is_done: bool


class Notifications:
    def __init__(
        self, store: Store, clock: Clock, dice: Dice, limits: Limits, messages: Messages
    ) -> None:
        self._store = store
        self._clock = clock
        self._dice = dice
        self._limits = limits
        self._messages = messages

    def plan(self, queue: Queue, draft: Draft, *, user_token: str | None = None) -> NewMessage:
        """A notification to be sent with `Messages.send`, or in a caller's own transaction.

        A draft without any date is due at once.  Raises InvalidRequest or TooLarge.
        """
        now = self._clock.now()
        if draft.due_at is not None and draft.delay_ms is not None:
            raise InvalidRequest("give due_at or delay_ms, not both")
        due_at = draft.due_at
        if due_at is None:
            due_at = now + check_delay("delay_ms", draft.delay_ms or 0)
        planned = notification.planned(
            draft,
            due_at=check_instant("due_at", due_at),
            user_token=user_token,
            future_token=uuid7(now, self._dice.digits(ID_DIGITS)),
        )
        return self._messages.draft(queue, planned)

    def find(self, wanted: Wanted) -> Ticket[Found]:
        """Live ones, in the order in which they were recorded."""
        return self._store.read(self.finding(wanted))

    def finding(self, wanted: Wanted) -> Callable[[Session], Found]:
        """The same, to be run in a transaction or on a view."""
        looked_for = self._checked(wanted)
        max_bytes = self._limits.max_answer_bytes
        return lambda session: _found(session, looked_for, max_bytes)

    def past(self, wanted: HistoryFilter) -> Ticket[EndedPage]:
        """Those that have ended, newest first, with what was sent if that is still kept."""
        return self._store.read(self.searching(wanted))

    def searching(self, wanted: HistoryFilter) -> Callable[[Session], EndedPage]:
        """The same, to be run in a transaction or on a view."""
        check_filter(wanted, max_limit=self._limits.max_claim)

        max_bytes = self._limits.max_answer_bytes

        def do(session: Session) -> EndedPage:
            found = session.history.search(wanted)
            endings = found[: count_fitting((ending.size for ending in found), max_bytes)]
            views = [MessageView(e.queue, e, session.history.content(e)) for e in endings]
            is_last = len(endings) == len(found) < wanted.limit
            before = None if is_last else (endings[-1].finished_at, endings[-1].history_no)
            return EndedPage(views, before)

        return do

    def change(self, message_id: str, wanted: Change) -> Ticket[Message]:
        """Another date, body, kind or tags while it is in line.

        MessageNotFound, WrongState, InvalidRequest and TooLarge come with the ticket.
        """
        return self._store.write(self.changing(message_id, wanted))

    def remove(self, message_id: str, *, reason: str | None = None) -> Ticket[Message]:
        """It will not be handled; refused (WrongState) while somebody is at it."""
        return self._store.write(self.removing(message_id, reason=reason))

    def remove_some(self, wanted: Wanted, *, reason: str | None = None) -> Ticket[Removed]:
        """Cancel a chunk of those in line; to be repeated until it is done."""
        return self._store.write(self._removing_some(wanted, reason))

    # --- the same, to be run in a transaction: ours, or the caller's own (Store.write_in) ---

    def changing(self, message_id: str, wanted: Change) -> Callable[[Session], Message]:
        if wanted == Change():
            raise InvalidRequest("nothing to change: give due_at, body, tags or kind")
        if wanted.due_at is not None:
            check_instant("due_at", wanted.due_at)
        now, limits = self._clock.now(), self._limits
        return lambda session: session.tagged.rewrite(
            message_id,
            lambda m, content, queue: notification.change(
                m, content, queue, wanted, now=now, limits=limits
            ),
            now=now,
        )

    def removing(
        self, message_id: str, *, reason: str | None = None
    ) -> Callable[[Session], Message]:
        now, kept = self._clock.now(), self._messages.kept(reason)
        return lambda session: session.messages.change(
            message_id, lambda m, _: lifecycle.cancel(m, reason=kept), now=now
        )

    def removing_all(
        self, wanted: Wanted, *, reason: str | None = None
    ) -> Callable[[Session], Removed]:
        """Not in chunks, however many there are: it is one transaction."""
        some = self._removing_some(wanted, reason)

        def everything(session: Session) -> Removed:
            total = 0
            while not (removed := some(session)).is_done:
                total += removed.cancelled
            return Removed(total, is_done=True)

        return everything

    def _removing_some(self, wanted: Wanted, reason: str | None) -> Callable[[Session], Removed]:
        now, kept = self._clock.now(), self._messages.kept(reason)
        in_line = msgspec.structs.replace(wanted, states=FUTURE, after_no=0, limit=CHUNK)
        looked_for = self._checked(in_line)

        def some(session: Session) -> Removed:
            found = session.tagged.find(looked_for)
            if not found:
                return Removed(0, is_done=True)
            # One queue at a time: locks are taken in one order (store/verbs/lock_order.py).
            queue_no = found[0].queue_no
            cancelled = session.tagged.cancel(looked_for, queue_no=queue_no, reason=kept, now=now)
            return Removed(cancelled, is_done=False)

        return some

    def _checked(self, wanted: Wanted) -> Tagged:
        check_tags(wanted.tag, wanted.tag1, wanted.tag2)
        if not 1 <= wanted.limit <= self._limits.max_claim:
            raise InvalidRequest(f"limit must be from 1 to {self._limits.max_claim}")
        return msgspec.convert(msgspec.structs.asdict(wanted), Tagged)


def _found(session: Session, wanted: Tagged, max_bytes: int) -> Found:
    matching = session.tagged.find(wanted)
    found = matching[: count_fitting((message.size for message in matching), max_bytes)]
    contents = session.tagged.contents(found)
    views = []
    for message in found:
        content = contents.get(message.message_no)
        if message.state not in IN_LINE:
            # Its due_at is the end of the lease; the date it was recorded for counts.
            planned = notification.planned_at(content.attributes if content else None)
            if planned is not None and not wanted.due_from <= planned < wanted.due_before:
                continue
        name = session.queues.get(message.queue_no).name
        views.append(MessageView(name, message, content))
    is_last = len(found) == len(matching) < wanted.limit
    return Found(views, None if is_last else found[-1].message_no)


def check_tags(tag: str | None, tag1: str | None, tag2: str | None) -> None:
    if tag is None and tag1 is None and tag2 is None:
        raise InvalidRequest("notifications are found by their tags: name tag1, tag2 or tag")
    if tag is not None and (tag1 is not None or tag2 is not None):
        raise InvalidRequest("give tag, or tag1 and tag2, not both")
