"""Gate and fair position of messages that are sent to a queue with limits or fair share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from penstock.domain.message.lifecycle import Message, State
from penstock.domain.queue.fair_share import NO_POSITION
from penstock.domain.queue.group_limit import ADMITTED, HELD_BACK
from penstock.store.limits.fair_positions import FairPositions
from penstock.store.limits.group_limits import Group, GroupLimits
from penstock.store.verbs.transaction_state import TransactionState


class Arrivals:
    def __init__(self, transaction: TransactionState) -> None:
        self._transaction = transaction
        self._group_limits = GroupLimits(transaction)
        self._positions = FairPositions(transaction)

    def place(self, arriving: Mapping[int, Message]) -> dict[int, Message]:
        """The messages with their gates and positions, assigned in order of arrival."""
        if not arriving:
            return {}
        self._transaction.require_queue_locks({m.queue_no for m in arriving.values()})
        positions = self._assign_positions(arriving)
        now = max(m.sent_at for m in arriving.values())
        instants = self._admission_instants(arriving, now=now)
        placed = {}
        for i, m in arriving.items():
            m = replace(m, fair_position=positions.get(i, NO_POSITION))
            if self._is_limited(m):
                m = _admit(m, instants[m.queue_no, m.group or ""], now=now)
            placed[i] = m
        return placed

    def _assign_positions(self, arriving: Mapping[int, Message]) -> dict[int, int]:
        joining = {i: m for i, m in arriving.items() if self._needs_position(m)}
        if not joining:
            return {}
        taken = self._positions.assign(
            [(m.queue_no, m.priority, m.group) for m in joining.values()]
        )
        return dict(zip(joining, taken, strict=True))

    def _admission_instants(
        self, arriving: Mapping[int, Message], *, now: int
    ) -> dict[Group, Iterator[int]]:
        """When the next messages of each limited group can be claimed, as far as there is room."""
        groups = {(m.queue_no, m.group or "") for m in arriving.values() if self._is_limited(m)}
        if not groups:
            return {}
        rooms = self._group_limits.rooms(sorted(groups), now=now)
        return {pair: room.instants(room.count, now=now) for pair, room in rooms.items()}

    def _needs_position(self, m: Message) -> bool:
        """A delayed message gets its position when it falls due, unless it has one already."""
        queue = self._transaction.queue(m.queue_no)
        return queue.settings.is_fair and (m.state is State.READY or queue.is_ordered)

    def _is_limited(self, m: Message) -> bool:
        return m.group is not None and self._transaction.queue(m.queue_no).settings.limits_groups


def _admit(m: Message, instants: Iterator[int], *, now: int) -> Message:
    """Admit it at the next of these instants, if there is one and it is not delayed anyway."""
    instant = next(instants, None) if m.state is State.READY else None
    if instant is None:
        return replace(m, gate=HELD_BACK, is_blocked=True)
    if instant <= now:
        return replace(m, gate=ADMITTED)
    return replace(m, gate=ADMITTED, state=State.WAITING, due_at=instant)
