"""Messages by tag: find, change while queued, cancel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from penstock.domain.limits import MAX_INSTANT
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.lifecycle import Content, Message, State
from penstock.domain.queue.queue import Queue


class Tagged(msgspec.Struct, frozen=True, kw_only=True):
    """Live messages in the order in which they were sent.  At least one tag is required.

    `due_from <= due_at < due_before`, for queued messages: a leased one has been due already.
    """

    tag: str | None = None  # matches either tag
    tag1: str | None = None
    tag2: str | None = None
    queue_no: int | None = None
    states: tuple[State, ...] = (State.WAITING, State.READY, State.LEASED)
    due_from: int = 0
    due_before: int = MAX_INSTANT + 1
    after_no: int = 0  # cursor: the number of the last one seen
    limit: int = 100


Rewrite = Callable[[Message, Content, Queue], NewMessage]


class TaggedMessages(Protocol):
    def find(self, wanted: Tagged) -> list[Message]: ...

    def contents(self, messages: Sequence[Message]) -> dict[int, Content]:
        """By message_no, with one query for each day."""
        ...

    def cancel(self, wanted: Tagged, *, queue_no: int, reason: str | None, now: int) -> int:
        """Cancel queued messages of one queue, up to the limit; returns how many."""
        ...

    def rewrite(self, message_id: str, how: Rewrite, *, now: int) -> Message:
        """Apply a pure change to a message and its content; raises MessageNotFound."""
        ...
