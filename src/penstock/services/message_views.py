"""A message as a caller sees it: live or from history, with its content and its queue's name."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from penstock.domain.errors import MessageNotFound, QueueNotFound
from penstock.domain.history import Ending, HistoryFilter
from penstock.domain.message import Content, Message
from penstock.domain.queue import Queue
from penstock.ports.store import Session


class MessageView(msgspec.Struct, frozen=True):
    """A live message or an ended one, with what was sent if that is still kept."""

    queue: str
    message: Message | Ending
    content: Content | None
    dead_from: str | None = None  # of a dead letter: the queue it died in, unless that is removed


def view_of_id(session: Session, message_id: str) -> MessageView:
    """Live, or from history; raises MessageNotFound."""
    message = session.messages.find(message_id)
    if message is not None:
        return view_of(session, session.queues.get(message.queue_no).name, message)
    endings = session.history.search(HistoryFilter(id=message_id, limit=1))
    if not endings:
        raise MessageNotFound(message_id)
    return MessageView(endings[0].queue, endings[0], session.history.content(endings[0]))


def view_of(session: Session, queue: str, message: Message) -> MessageView:
    dead_from = None
    if message.dead_from is not None:
        with suppress(QueueNotFound):
            dead_from = session.queues.get(message.dead_from).name
    return MessageView(queue, message, session.messages.content(message), dead_from)


def home_of(session: Session, message: Message) -> Queue:
    """Where a dead one goes back to: the queue it died in, or if that is gone where it is."""
    try:
        return session.queues.get(message.dead_from or message.queue_no)
    except QueueNotFound:
        return session.queues.get(message.queue_no)
