"""What messages get that are sent to a queue with limits or fair share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from penstock.domain.message.lifecycle import Message, State
from penstock.domain.queue.fair_share import NO_POSITION
from penstock.domain.queue.group_limit import ADMITTED, HELD_BACK
from penstock.store.limits.fair_positions import Turns
from penstock.store.limits.group_limits import Group, Openings
from penstock.store.verbs.transaction_state import Books


class Arrivals:
    def __init__(self, books: Books) -> None:
        self._books = books
        self._openings = Openings(books)
        self._turns = Turns(books)

    def place(self, arriving: Mapping[int, Message]) -> dict[int, Message]:
        """As each of them stands there, in the order of their coming, together or not."""
        if not arriving:
            return {}
        self._books.need_lines({m.queue_no for m in arriving.values()})
        turns = self._take_turns(arriving)
        now = max(m.sent_at for m in arriving.values())
        instants = self._instants(arriving, now=now)
        placed = {}
        for i, m in arriving.items():
            m = replace(m, turn=turns.get(i, NO_POSITION))
            if self._is_limited(m):
                m = _judged(m, instants[m.queue_no, m.group or ""], now=now)
            placed[i] = m
        return placed

    def _take_turns(self, arriving: Mapping[int, Message]) -> dict[int, int]:
        joining = {i: m for i, m in arriving.items() if self._joins(m)}
        if not joining:
            return {}
        taken = self._turns.take([(m.queue_no, m.priority, m.group) for m in joining.values()])
        return dict(zip(joining, taken, strict=True))

    def _instants(self, arriving: Mapping[int, Message], *, now: int) -> dict[Group, Iterator[int]]:
        """Of each limited group: when those who come can be claimed, as far as there is room."""
        groups = {(m.queue_no, m.group or "") for m in arriving.values() if self._is_limited(m)}
        if not groups:
            return {}
        rooms = self._openings.rooms(sorted(groups), now=now)
        return {pair: room.instants(room.count, now=now) for pair, room in rooms.items()}

    def _joins(self, m: Message) -> bool:
        """One that is delayed joins the line when it falls due, unless it has its place already."""
        queue = self._books.queue(m.queue_no)
        return queue.settings.is_fair and (m.state is State.READY or queue.is_ordered)

    def _is_limited(self, m: Message) -> bool:
        return m.group is not None and self._books.queue(m.queue_no).settings.limits_groups


def _judged(m: Message, instants: Iterator[int], *, now: int) -> Message:
    """Let through at the next of these instants, if there is one and it is not delayed anyway."""
    instant = next(instants, None) if m.state is State.READY else None
    if instant is None:
        return replace(m, gate=HELD_BACK, is_blocked=True)
    if instant <= now:
        return replace(m, gate=ADMITTED)
    return replace(m, gate=ADMITTED, state=State.WAITING, due_at=instant)
