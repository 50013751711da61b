"""Messages of a queue by what they are: looked at, and changed by hand, many at a time."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from penstock.domain.errors import InvalidRequest, MessageNotFound
from penstock.domain.limits import Limits
from penstock.domain.message.draft import is_label
from penstock.domain.message.lifecycle import Message
from penstock.domain.message.selection import Order, Pick, apply, place_of
from penstock.domain.queue.queue import Queue
from penstock.ports.clock import Clock
from penstock.ports.store import Browse, Session, Store, Stretch
from penstock.ports.ticket import Ticket
from penstock.services.message_views import MessagePage, Place, home_of, page_of
from penstock.services.messages import Messages

STRETCH = 10_000  # so many are looked at for one page
MAX_IDS = 1_000  # named in one request
MAX_PICKED = 100_000  # found for one request


class PickedIds(msgspec.Struct, frozen=True):
    ids: list[str]
    after: Place | None


class Picking:
    def __init__(self, store: Store, clock: Clock, limits: Limits, messages: Messages) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._messages = messages

    def page(
        self, queue: Queue, pick: Pick, *, limit: int, after: Place | None
    ) -> Ticket[MessagePage]:
        """A page that looks at some thousands at most: it may be short, and not the last."""
        return self._store.read(self.paging(queue, pick, limit=limit, after=after))

    def paging(
        self, queue: Queue, pick: Pick, *, limit: int, after: Place | None
    ) -> Callable[[Session], MessagePage]:
        """The same, to be run in a transaction or on a view."""
        wanted = self._browse(queue, pick, limit, after)

        max_bytes = self._limits.max_answer_bytes

        def do(session: Session) -> MessagePage:
            found = _look(session, wanted, pick)
            return page_of(session, queue.name, found.messages, end=found.end, max_bytes=max_bytes)

        return do

    def ids(self, queue: Queue, pick: Pick, *, after: Place | None) -> Ticket[PickedIds]:
        wanted = self._browse(queue, pick, self._limits.max_claim, after)

        def do(session: Session) -> PickedIds:
            found = _look(session, wanted, pick)
            return PickedIds([message.id for message in found.messages], found.end)

        return self._store.read(do)

    def of_queue(self, queue: Queue, ids: list[str]) -> Ticket[list[str]]:
        """Those of them that are in this queue, each once."""
        if not 1 <= len(ids) <= MAX_IDS:
            raise InvalidRequest(f"ids are 1 to {MAX_IDS}")

        def do(session: Session) -> list[str]:
            found = (session.messages.find(message_id) for message_id in dict.fromkeys(ids))
            return [m.id for m in found if m is not None and m.queue_no == queue.queue_no]

        return self._store.read(do)

    def act(self, queue: Queue, message_id: str, order: Order) -> Ticket[Message]:
        """Raises WrongState, or MessageNotFound if it is not in this queue any more."""
        return self._store.write(self.acting(message_id, order, queue=queue))

    def acting(
        self, message_id: str, order: Order, *, queue: Queue | None = None
    ) -> Callable[[Session], Message]:
        """An act by hand in a transaction, ours or the caller's own; `queue`: only if it is there.

        WrongState and MessageNotFound are raised by what is returned.
        """
        now = self._clock.now()
        kept = msgspec.structs.replace(order, reason=self._messages.kept(order.reason))

        def do(session: Session) -> Message:
            seen = session.messages.find(message_id)
            if seen is None or (queue is not None and seen.queue_no != queue.queue_no):
                raise MessageNotFound(message_id)
            home = home_of(session, seen)
            return session.messages.change(
                message_id, lambda m, _: apply(kept, m, home, now=now), now=now
            )

        return do

    def _browse(self, queue: Queue, pick: Pick, limit: int, after: Place | None) -> Browse:
        if not 1 <= limit <= self._limits.max_claim:
            raise InvalidRequest(f"limit must be from 1 to {self._limits.max_claim}")
        for label in (pick.kind, pick.tag, pick.group, pick.entity_id):
            if label is not None and not is_label(label, self._limits):
                raise InvalidRequest(
                    f"what is looked for has 1 to {self._limits.max_label_chars} characters"
                )
        return Browse(queue_no=queue.queue_no, state=pick.state, limit=limit, after=after)


def _look(session: Session, wanted: Browse, pick: Pick) -> Stretch:
    found = session.messages.stretch(wanted, pick, length=STRETCH)
    if len(found.messages) < wanted.limit:
        return found
    return Stretch(found.messages, place_of(found.messages[-1]))
