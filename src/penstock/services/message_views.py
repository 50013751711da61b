"""A message as a caller sees it: live or from history, with its content and its queue's name."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from penstock.domain.errors import MessageNotFound, QueueNotFound
from penstock.domain.message.history import Ending, HistoryFilter
from penstock.domain.message.lifecycle import Content, Message
from penstock.domain.message.selection import count_fitting, place_of
from penstock.domain.queue.queue import Queue
from penstock.ports.store import Session

Place = tuple[int, int, int, int]


class MessageView(msgspec.Struct, frozen=True):
    """A live or ended message, with its content if that is still stored."""

    queue: str
    message: Message | Ending
    content: Content | None
    dead_from: str | None = None  # of a dead letter: the queue it died in; None if that was removed
    result: str | None = None  # JSON text
    flow_id: str | None = None  # of a member of a flow
    is_unsent: bool = False  # it is a member that waits for others, or was not needed
    waits_for: int = 0  # of a member that is not in its queue yet: parents that have not ended


class MessagePage(msgspec.Struct, frozen=True):
    """Ends at the limit, or when the bodies fill the answer."""

    views: list[MessageView]
    after: Place | None  # where the next page begins; None: this was the last


class EndedPage(msgspec.Struct, frozen=True):
    """The same for messages from history."""

    views: list[MessageView]
    before: tuple[int, int] | None


def page_of(
    session: Session, queue: str, messages: Sequence[Message], *, end: Place | None, max_bytes: int
) -> MessagePage:
    """A page with the messages that fit; `end`: where the next page begins if all fit."""
    count = count_fitting((message.size for message in messages), max_bytes)
    after = end if count == len(messages) else place_of(messages[count - 1])
    return MessagePage([view_of(session, queue, m) for m in messages[:count]], after)


def view_of_id(session: Session, message_id: str) -> MessageView:
    """The message, live or from history; raises MessageNotFound."""
    message = session.messages.find(message_id)
    if message is not None:
        view = view_of(session, session.queues.get(message.queue_no).name, message)
        if message.flow_no is None:
            return view
        return msgspec.structs.replace(view, flow_id=session.flows.id_of_message(message_id))
    endings = session.history.search(HistoryFilter(id=message_id, limit=1))
    if not endings:
        return _unsent_view(session, message_id)
    ending = endings[0]
    flow_id = session.flows.id_of_message(message_id)
    content, result = session.history.content(ending), session.results.of_ending(ending)
    return MessageView(ending.queue, ending, content, result=result, flow_id=flow_id)


def _unsent_view(session: Session, message_id: str) -> MessageView:
    """A member of a flow that waits for others, or was never sent."""
    found = session.flows.unsent(message_id)
    if found is None:
        raise MessageNotFound(message_id)
    flow_id = session.flows.id_of_message(message_id)
    queue = session.queues.by_numbers([found.message.queue_no])
    name = queue[0].name if queue else ""
    return MessageView(
        name,
        found.message,
        found.content,
        flow_id=flow_id,
        is_unsent=True,
        waits_for=found.member.waits_for,
    )


def view_of(session: Session, queue: str, message: Message) -> MessageView:
    dead_from = None
    if message.dead_from is not None:
        with suppress(QueueNotFound):
            dead_from = session.queues.get(message.dead_from).name
    return MessageView(queue, message, session.messages.content(message), dead_from)


def home_of(session: Session, message: Message) -> Queue:
    """The queue that a dead message returns to: where it died, or this one if that is gone."""
    try:
        return session.queues.get(message.dead_from or message.queue_no)
    except QueueNotFound:
        return session.queues.get(message.queue_no)
