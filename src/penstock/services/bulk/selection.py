"""Selects messages of a queue by their fields, to read or change many at a time."""

from __future__ import annotations

import msgspec

from penstock.domain.errors import InvalidRequest, MessageNotFound
from penstock.domain.limits import Limits
from penstock.domain.message.draft import is_label
from penstock.domain.message.lifecycle import Message
from penstock.domain.message.selection import BulkRequest, Selection, apply, place_of
from penstock.ports.clock import Clock
from penstock.ports.store import Browse, ScannedPage, Session, Store
from penstock.ports.unit_of_work import Work, read, write
from penstock.services.message_views import MessagePage, Place, home_of, page_of
from penstock.services.messages import MessageService

SCANNED_PER_PAGE = 10_000  # messages searched for one page
MAX_IDS = 1_000  # named in one request
MAX_SELECTED = 100_000  # found for one request


class SelectedIds(msgspec.Struct, frozen=True):
    ids: list[str]
    after: Place | None


class SelectionService:
    def __init__(
        self, store: Store, clock: Clock, limits: Limits, messages: MessageService
    ) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._messages = messages

    def page(
        self, queue: str, selection: Selection, *, limit: int, after: Place | None
    ) -> Work[MessagePage]:
        """Searches at most `SCANNED_PER_PAGE` messages, so a short page need not be the last."""
        if selection.is_everything:
            return self._messages.browse(queue, selection.state, limit=limit, after=after)
        self._check(selection, limit)

        def do(session: Session) -> MessagePage:
            found = _scan(session, queue, selection, limit, after)
            max_bytes = self._limits.max_answer_bytes
            return page_of(session, queue, found.messages, end=found.end, max_bytes=max_bytes)

        return read(self._store, do)

    def ids(self, queue: str, selection: Selection, *, after: Place | None) -> Work[SelectedIds]:
        limit = self._limits.max_claim
        self._check(selection, limit)

        def do(session: Session) -> SelectedIds:
            found = _scan(session, queue, selection, limit, after)
            return SelectedIds([message.id for message in found.messages], found.end)

        return read(self._store, do)

    def of_queue(self, queue: str, ids: list[str]) -> Work[list[str]]:
        """The ids of messages that are in this queue, without duplicates."""
        if not 1 <= len(ids) <= MAX_IDS:
            raise InvalidRequest(f"ids takes 1 to {MAX_IDS} entries")

        def do(session: Session) -> list[str]:
            queue_no = session.queues.named(queue).queue_no
            found = (session.messages.find(message_id) for message_id in dict.fromkeys(ids))
            return [m.id for m in found if m is not None and m.queue_no == queue_no]

        return read(self._store, do)

    def act(
        self, message_id: str, request: BulkRequest, *, queue: str | None = None
    ) -> Work[Message]:
        """Raises WrongState or MessageNotFound; `queue`: only if the message is in that queue."""
        now = self._clock.now()
        shortened = msgspec.structs.replace(request, reason=self._messages.shorten(request.reason))

        def do(session: Session) -> Message:
            seen = session.messages.find(message_id)
            if seen is None or (
                queue is not None and session.queues.get(seen.queue_no).name != queue
            ):
                raise MessageNotFound(message_id)
            home = home_of(session, seen)
            return session.messages.change(
                message_id, lambda m, _: apply(shortened, m, home, now=now), now=now
            )

        return write(self._store, do)

    def _check(self, selection: Selection, limit: int) -> None:
        if not 1 <= limit <= self._limits.max_claim:
            raise InvalidRequest(f"limit must be from 1 to {self._limits.max_claim}")
        for label in (selection.kind, selection.tag, selection.group, selection.entity_id):
            if label is not None and not is_label(label, self._limits):
                raise InvalidRequest(
                    f"each value has 1 to {self._limits.max_label_chars} characters"
                )


def _scan(
    session: Session, queue: str, selection: Selection, limit: int, after: Place | None
) -> ScannedPage:
    queue_no = session.queues.named(queue).queue_no
    wanted = Browse(queue_no=queue_no, state=selection.state, limit=limit, after=after)
    found = session.messages.scan_page(wanted, selection, length=SCANNED_PER_PAGE)
    if len(found.messages) < wanted.limit:
        return found
    return ScannedPage(found.messages, place_of(found.messages[-1]))
