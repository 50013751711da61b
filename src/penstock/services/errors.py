"""Groups the errors of dead messages, in their queues and in dead-letter queues."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from penstock.domain.message.error_line import ErrorName, error_name
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.message.selection import Selection
from penstock.domain.queue.queue import Queue
from penstock.ports.store import Browse, Session, Store
from penstock.ports.unit_of_work import Steps, read
from penstock.services.message_views import Place

MAX_EXAMINED = 10_000  # messages, per request
_AT_ONCE = 1_000  # per transaction
NO_ERROR = "no error"


class DeadMessage(msgspec.Struct, frozen=True):
    queue: str
    message: Message

    @property
    def error(self) -> str:
        """What an operator looks for: the last error, or else the reason of its end."""
        return self.message.last_error or self.message.reason or NO_ERROR

    @property
    def name(self) -> ErrorName:
        return error_name(self.error)

    @property
    def at(self) -> int:
        return self.message.leased_at or self.message.sent_at


class DeadMessages(msgspec.Struct, frozen=True):
    messages: list[DeadMessage]
    is_cut: bool


class _Part(msgspec.Struct, frozen=True):
    """The messages of a queue in one state: dead, or dead letters of other queues."""

    queue: Queue
    state: State


class ErrorService:
    def __init__(self, store: Store) -> None:
        self._store = store

    def dead(self, queue: str | None, *, sees: Callable[[str], bool]) -> Steps[DeadMessages]:
        """The dead messages of the queues that the caller sees; raises QueueNotFound."""
        parts = yield from read(self._store, lambda session: _parts(session, queue, sees))
        found: list[DeadMessage] = []
        examined = 0
        for part in parts:
            after: Place | None = None
            while True:
                page, after = yield from read(self._store, _reader(part, after))
                found += _dead_of(part, page)
                examined += len(page)
                if examined > MAX_EXAMINED:
                    return DeadMessages(found[:MAX_EXAMINED], is_cut=True)
                if after is None:
                    break
        return DeadMessages(found, is_cut=False)


def _parts(session: Session, only: str | None, sees: Callable[[str], bool]) -> list[_Part]:
    if only is not None:
        session.queues.named(only)
    queues = list(_all(session))
    homes = {queue.settings.dead_letter_queue for queue in queues}
    shown = [queue for queue in queues if sees(queue.name) and only in (None, queue.name)]
    counts = session.queues.counts([queue.queue_no for queue in shown])
    dead = [_Part(queue, State.DEAD) for queue in shown if counts[queue.queue_no].dead]
    # Last: messages that were never dead must not use up the limit.
    return dead + [
        _Part(queue, state)
        for queue in shown
        if queue.name in homes
        for state in (State.READY, State.WAITING)
    ]


def _all(session: Session) -> Iterator[Queue]:
    after = ""
    while page := session.queues.page(prefix="", after=after, limit=_AT_ONCE):
        yield from page
        after = page[-1].name


def _dead_of(part: _Part, page: list[Message]) -> list[DeadMessage]:
    """In a dead-letter queue, only messages that died elsewhere."""
    return [
        DeadMessage(part.queue.name, message)
        for message in page
        if part.state is State.DEAD or message.dead_from is not None
    ]


def _reader(
    part: _Part, after: Place | None
) -> Callable[[Session], tuple[list[Message], Place | None]]:
    def do(session: Session) -> tuple[list[Message], Place | None]:
        wanted = Browse(queue_no=part.queue.queue_no, state=part.state, limit=_AT_ONCE, after=after)
        found = session.messages.scan_page(wanted, Selection(state=part.state), length=_AT_ONCE)
        return found.messages, found.end

    return do
