"""Stores the changes that the lifecycle has decided, with all their consequences.

A change may end a message (history), end a lease (an attempt), move the message to a dead-letter
queue and unblock the next one of its group; it also changes the counters.  Everything except sends,
claims and plain completions goes through here.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from penstock.domain.limits import DAY
from penstock.domain.message import transfer
from penstock.domain.message.dedup import frees_key
from penstock.domain.message.history import FAILURES, Attempt, AttemptOutcome
from penstock.domain.message.lifecycle import LIVE, NEXT_ORDER, NEXT_POSITION, Message, State
from penstock.domain.queue.fair_share import NO_POSITION
from penstock.domain.queue.group_limit import ADMITTED, HELD_BACK, NO_GATE
from penstock.domain.queue.queue import DedupUntil
from penstock.store.database import Row
from penstock.store.limits.fair_positions import FairPositions
from penstock.store.limits.group_limits import GroupLimits
from penstock.store.verbs.dedup_claims import DedupClaim, dedup_claim_of, release_keys
from penstock.store.verbs.flow_endings import FlowEndings
from penstock.store.verbs.transaction_state import TransactionState, json_list

_ENDS = (State.DONE, State.DEAD, State.CANCELLED)


class MessageChanges:
    def __init__(self, transaction: TransactionState, flow_endings: FlowEndings) -> None:
        self._transaction = transaction
        self._flow_endings = flow_endings
        self._group_limits = GroupLimits(transaction)
        self._positions = FairPositions(transaction)
        self._db = transaction.db
        self.reset()

    def reset(self) -> None:
        """Forget what was recorded."""
        self.has_unsaved = False
        self._saves: dict[int, Message] = {}
        self._removed: list[int] = []
        self._endings: dict[int, list[Row]] = {}
        self._attempts: dict[int, list[Row]] = {}
        self._groups: set[tuple[int, str]] = set()
        self._limited: set[tuple[int, str]] = set()
        self._now = 0
        self._flows_at = 0
        self._freed: list[DedupClaim] = []

    def note(
        self,
        before: Message,
        after: Message,
        *,
        now: int,
        ended_lease: Attempt | None = None,
        result: str | None = None,
    ) -> Message:
        """Record one change; returns the message as it will be stored (it may have moved).

        `result`: what a completion returned.
        """
        self.has_unsaved = True
        if ended_lease is not None:
            self._end_lease(ended_lease)
        if before.state is not State.DEAD and after.state in _ENDS:
            self._end(after, now, result)
        has_died = after.state is State.DEAD and before.state is not State.DEAD
        if has_died:
            after = self._to_dead_letters(after, now)
        if before.dedup_until is not None and frees_key(before, after):
            self._freed.append(dedup_claim_of(before))
        # A queue may be its own dead-letter queue.
        has_moved = after.queue_no != before.queue_no or (has_died and after.state in LIVE)
        self._count(before, after, has_moved=has_moved)
        self._unblock_next(before, after)
        after = self._place(before, after)
        if before.gate or self._transaction.limited_queues:
            after = self._apply_group_limit(before, after, now)
        if before.flow_no is not None:
            self._flow_endings.note(before, after, result=result)
            self._flows_at = max(self._flows_at, now)
        self._saves.pop(before.message_no, None)  # noted again: the last time decides its place
        if after.state in (State.DONE, State.CANCELLED):
            self._removed.append(before.message_no)
        else:
            self._saves[before.message_no] = after
        return after

    def save(self) -> None:
        """Write all recorded changes in few statements."""
        # Locked before new places are assigned: they must be in order of arrival.
        self._transaction.lock_groups(self._groups)
        if self._saves:
            self._renumber()
            self._db.update("messages.save", [_params_of(m) for m in self._saves.values()])
            if self._transaction.dead_rows.queues:
                for m in self._saves.values():
                    self._transaction.note_ready(m, m.message_no)
        if self._removed:
            self._db.post("messages.remove", {"message_nos": json_list(self._removed)})
        for day, rows in self._endings.items():
            self._db.insert("messages.end", rows, day=self._transaction.partitions.ensure(day))
        for day, rows in self._attempts.items():
            self._db.insert("messages.attempt", rows, day=self._transaction.partitions.ensure(day))
        if self._groups:
            self.unblock(self._groups)
        if self._limited:
            self._group_limits.admit(self._limited, now=self._now)
        if self._freed:
            release_keys(self._transaction, self._freed)
        flows_at = self._flows_at
        self.reset()
        if flows_at:
            self._flow_endings.settle(now=flows_at)

    def unblock(self, groups: set[tuple[int, str]]) -> None:
        """Make the first unfinished message of each group claimable."""
        self._transaction.lock_groups(groups)
        rows = self._db.rows("messages.unblock", {"groups": json_list(sorted(groups))})
        for queue_no, state, *front in rows:
            if state == State.READY:
                self._transaction.wake(queue_no)
                if queue_no in self._transaction.dead_rows.queues:
                    kind, *place = front
                    self._transaction.dead_rows.note_ready(queue_no, kind, tuple(place))

    def _end(self, ended: Message, now: int, result: str | None) -> None:
        m = ended
        row = (
            m.id, m.message_no, m.queue_no, m.state.value, m.reason, m.kind, m.entity_id, m.tag1,
            m.tag2, m.group, m.priority, m.sent_at, m.due_at, m.first_leased_at, m.leased_at, now,
            m.attempts, m.failures, m.lease_no, m.leased_by, m.last_error, m.size, m.body_day,
            m.route, m.crashes, m.dedup_key if m.dedup_until is DedupUntil.ENDED else None, result,
            m.flow_no,
        )  # fmt: skip
        self._transaction.ended.append(m.id)
        self._endings.setdefault(now // DAY, []).append(row)
        count = self._transaction.count(m.queue_no)
        total = f"{m.state.value}_total"
        setattr(count, total, getattr(count, total) + 1)

    def _end_lease(self, ended: Attempt) -> None:
        count = self._transaction.count(ended.queue_no)
        if ended.outcome is AttemptOutcome.EXPIRED:
            count.expired_total += 1
        if ended.outcome in FAILURES:
            count.failed_total += 1
        a = ended
        row = (
            a.id, a.message_no, a.queue_no, a.lease_no, a.outcome.value, a.leased_at, a.ended_at,
            a.leased_by, a.error,
        )  # fmt: skip
        self._attempts.setdefault(a.ended_at // DAY, []).append(row)

    def _to_dead_letters(self, dead: Message, now: int) -> Message:
        target = self._transaction.dead_letter_queue_of(self._transaction.queue(dead.queue_no))
        if target is None:  # not configured, or removed: the message stays where it died
            return dead
        return transfer.dead_letter(dead, target, now=now)

    def _count(self, before: Message, after: Message, *, has_moved: bool) -> None:
        transaction = self._transaction
        transaction.count_state(before.queue_no, before.state, -1)
        if after.state in LIVE or after.state is State.DEAD:
            transaction.count_state(after.queue_no, after.state, +1)
        came_back = before.state is State.DEAD and after.state in LIVE
        if came_back or (has_moved and after.state in LIVE):
            transaction.count(after.queue_no).sent_total += 1
            if not came_back and after.dead_from is None:
                # Redriven from a dead-letter queue: there it counts as cancelled.
                transaction.count(before.queue_no).cancelled_total += 1
        if before.state is State.LEASED and transaction.limits_leases(before.queue_no):
            transaction.wake(before.queue_no)
        if after.state is State.READY:
            transaction.wake(after.queue_no)
        elif after.state in LIVE:
            transaction.wake(after.queue_no, 0)  # its due date may be earlier than the known one

    def _unblock_next(self, before: Message, after: Message) -> None:
        left = after.state not in LIVE or after.queue_no != before.queue_no
        if before.group is None or before.state not in LIVE or not left:
            return
        if self._transaction.queue(before.queue_no).is_ordered:
            self._groups.add((before.queue_no, before.group))

    def _place(self, before: Message, after: Message) -> Message:
        """Block a message that goes to the back of its group."""
        arrived = after.order_no == NEXT_ORDER
        if not arrived or after.state not in LIVE or after.group is None:
            return replace(after, is_blocked=after.is_blocked and not arrived)
        if not self._transaction.queue(after.queue_no).is_ordered:
            return replace(after, is_blocked=False)
        # Blocked for now; save() unblocks it if it is the first of its group.
        self._groups.add((after.queue_no, after.group))
        return replace(after, is_blocked=True)

    def _renumber(self) -> None:
        """Assign new places to messages that go to the back, in the order recorded."""
        back = [
            no
            for no, m in self._saves.items()
            if m.order_no == NEXT_ORDER or m.fair_position == NEXT_POSITION
        ]
        if back:
            numbers = self._transaction.take_numbers(len(back))
            for number, no in zip(numbers, back, strict=True):
                self._saves[no] = self._at_back(self._saves[no], number)
        if self._transaction.limited_queues:
            self._assign_positions(set(back))

    def _at_back(self, m: Message, number: int) -> Message:
        """Behind all queued messages, or its group behind all groups that have some."""
        order_no = number if m.order_no == NEXT_ORDER else m.order_no
        rotates = self._transaction.queue(m.queue_no).settings.rotates_groups
        return replace(m, order_no=order_no, fair_position=number if rotates else m.fair_position)

    def _assign_positions(self, back: set[int]) -> None:
        """In fair queues: for messages with a new place, and for those without a position."""
        joining = [
            no
            for no, m in self._saves.items()
            if (no in back or (m.state is State.READY and m.fair_position == NO_POSITION))
            and m.state in LIVE
            and self._transaction.queue(m.queue_no).settings.is_fair
        ]
        if joining:
            places = [self._saves[no] for no in joining]
            positions = self._positions.assign([(m.queue_no, m.priority, m.group) for m in places])
            for position, no in zip(positions, joining, strict=True):
                self._saves[no] = replace(self._saves[no], fair_position=position)

    def _apply_group_limit(self, before: Message, after: Message, now: int) -> Message:
        """Set the gate in a limited group; a change may admit other messages of the group."""
        if before.state is State.LEASED and after.state is State.LEASED:
            return after
        self._now = max(self._now, now)
        if before.gate and before.group is not None:
            self._limited.add((before.queue_no, before.group))
        settings = self._transaction.queue(after.queue_no).settings
        if after.state not in LIVE or after.group is None or not settings.limits_groups:
            if not after.gate:
                return after
            return replace(after, gate=NO_GATE, is_blocked=False)
        if after.state is State.LEASED or _was_admitted_for_now(before, after, now):
            return replace(after, gate=ADMITTED, is_blocked=False)
        self._limited.add((after.queue_no, after.group))
        return replace(after, gate=HELD_BACK, is_blocked=True)


def _was_admitted_for_now(before: Message, after: Message, now: int) -> bool:
    """Whether its admission instant has come; False if it was rescheduled by hand."""
    has_waited = before.state is State.WAITING and before.due_at <= now
    return has_waited and after.state is State.READY and after.gate == ADMITTED


def _params_of(m: Message) -> dict[str, Any]:
    return {
        "queue_no": m.queue_no,
        "due_at": m.due_at,
        "state": m.state.value,
        "order_no": m.order_no,
        "expires_at": m.expires_at,
        "attempts": m.attempts,
        "failures": m.failures,
        "is_blocked": int(m.is_blocked),
        "last_error": m.last_error,
        "dead_from": m.dead_from,
        "reason": m.reason,
        "started_at": m.started_at,
        "crashes": m.crashes,
        "dedup_until": m.dedup_until and m.dedup_until.value,
        "progress": m.progress,
        "turn": m.fair_position,
        "gate": m.gate,
        "message_no": m.message_no,
    }
