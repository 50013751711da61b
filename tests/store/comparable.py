"""Answers of a store without the parts it may choose freely, to compare them with the model's."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from penstock.domain.errors import PenstockError
from penstock.domain.message.lifecycle import Message, State
from penstock.ports.store import Acted, Claimed, Sent
from tests.store.model import ActAnswer, ClaimAnswer


def plain(m: Message) -> Message:
    """Without numbers, which a store may choose as long as they grow."""
    is_dead = m.state is State.DEAD
    is_blocked, position = m.is_blocked and not is_dead, 0 if is_dead else m.fair_position
    return replace(m, message_no=0, order_no=0, is_blocked=is_blocked, fair_position=position)


def in_line(messages: list[Message]) -> list[str]:
    live = [m for m in messages if m.state is not State.DEAD]
    return [m.id for m in sorted(live, key=lambda m: m.order_no)]


def unnumbered(answers: list[Any]) -> list[Any]:
    return [replace(a, message_no=None) if isinstance(a, Sent) else a for a in answers]


def plain_sent(answer: Sent | PenstockError) -> Sent | type[PenstockError]:
    return replace(answer, message_no=None) if isinstance(answer, Sent) else type(answer)


def plain_acted(answer: Acted | PenstockError) -> ActAnswer | type[PenstockError]:
    if not isinstance(answer, Acted):
        return type(answer)
    is_over = answer.state in (State.DONE, State.CANCELLED)
    return ActAnswer(answer.id, answer.state, None if is_over else answer.due_at)


def plain_claimed(claimed: Claimed | PenstockError) -> ClaimAnswer | type[PenstockError]:
    if not isinstance(claimed, Claimed):
        return type(claimed)
    return ClaimAnswer([m.id for m, _ in claimed.messages], claimed.next_due_at)
