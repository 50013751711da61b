"""Writing back what the lifecycle has decided, with all that follows from it.

A change may end a message (history), end a lease (an attempt), move it to a dead-letter queue,
let the next of its group come forward, and alters the counters.  Everything that is not a send, a
claim or a completion goes through here.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from penstock.domain.limits import DAY
from penstock.domain.message import transfer
from penstock.domain.message.dedup import frees_key
from penstock.domain.message.history import FAILURES, Attempt, AttemptOutcome
from penstock.domain.message.lifecycle import LIVE, NEXT_ORDER, Message, State
from penstock.domain.queue.fair_share import NO_POSITION
from penstock.domain.queue.group_limit import ADMITTED, HELD_BACK, NO_GATE
from penstock.domain.queue.queue import DedupUntil
from penstock.store.database import Row
from penstock.store.limits.fair_positions import Turns
from penstock.store.limits.group_limits import Openings
from penstock.store.verbs.dedup_claims import Held, give_back, held_by
from penstock.store.verbs.transaction_state import Books, json_list

_ENDS = (State.DONE, State.DEAD, State.CANCELLED)


class Changes:
    def __init__(self, books: Books) -> None:
        self._books = books
        self._openings = Openings(books)
        self._turns = Turns(books)
        self._db = books.db
        self.open()

    def open(self) -> None:
        """Start afresh: what a failed transaction had noted is void."""
        self._saves: dict[int, Message] = {}
        self._removed: list[int] = []
        self._endings: dict[int, list[Row]] = {}
        self._attempts: dict[int, list[Row]] = {}
        self._groups: set[tuple[int, str]] = set()
        self._limited: set[tuple[int, str]] = set()
        self._now = 0
        self._freed: list[Held] = []

    def note(
        self,
        before: Message,
        after: Message,
        *,
        now: int,
        ended_lease: Attempt | None = None,
    ) -> Message:
        """Take in one change; returns the message as it will stand (it may have moved)."""
        if ended_lease is not None:
            self._end_lease(ended_lease)
        if before.state is not State.DEAD and after.state in _ENDS:
            self._end(after, now)
        if after.state is State.DEAD and before.state is not State.DEAD:
            after = self._to_dead_letters(after, now)
        if before.dedup_until is not None and frees_key(before, after):
            self._freed.append(held_by(before))
        self._count(before, after)
        self._let_next_come(before, after)
        after = self._place(before, after)
        if before.gate or self._books.steered:
            after = self._judge(before, after, now)
        self._saves.pop(before.message_no, None)  # noted twice: its place is that of the last time
        if after.state in (State.DONE, State.CANCELLED):
            self._removed.append(before.message_no)
        else:
            self._saves[before.message_no] = after
        return after

    def save(self) -> None:
        """Write everything noted so far, in few statements."""
        # Locked before new places are taken: the order of places is the order of coming.
        self._books.lock_groups(self._groups)
        if self._saves:
            self._renumber()
            self._db.update("messages.save", [_saved(m) for m in self._saves.values()])
        if self._removed:
            self._db.post("messages.remove", {"message_nos": json_list(self._removed)})
        for day, rows in self._endings.items():
            self._db.insert("messages.end", rows, day=self._books.partitions.ensure(day))
        for day, rows in self._attempts.items():
            self._db.insert("messages.attempt", rows, day=self._books.partitions.ensure(day))
        if self._groups:
            self.unblock(self._groups)
        if self._limited:
            self._openings.open(self._limited, now=self._now)
        if self._freed:
            give_back(self._books, self._freed)
        self.open()

    def unblock(self, groups: set[tuple[int, str]]) -> None:
        """The first unfinished message of each group may be claimed from now on."""
        self._books.lock_groups(groups)
        rows = self._db.rows("messages.unblock", {"groups": json_list(sorted(groups))})
        for queue_no, state in rows:
            if state == State.READY:
                self._books.wake(queue_no)

    def _end(self, ended: Message, now: int) -> None:
        m = ended
        row = (
            m.id, m.message_no, m.queue_no, m.state.value, m.reason, m.kind, m.entity_id, m.tag1,
            m.tag2, m.group, m.priority, m.sent_at, m.due_at, m.first_leased_at, m.leased_at, now,
            m.attempts, m.failures, m.lease_no, m.leased_by, m.last_error, m.size, m.body_day,
            m.route, m.crashes, m.dedup_key if m.dedup_until is DedupUntil.ENDED else None,
        )  # fmt: skip
        self._endings.setdefault(now // DAY, []).append(row)
        count = self._books.count(m.queue_no)
        total = f"{m.state.value}_total"
        setattr(count, total, getattr(count, total) + 1)

    def _end_lease(self, ended: Attempt) -> None:
        count = self._books.count(ended.queue_no)
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
        target = self._books.dead_letter_queue_of(self._books.queue(dead.queue_no))
        if target is None:  # none, or removed in the meantime: it rests where it died
            return dead
        return transfer.dead_letter(dead, target, now=now)

    def _count(self, before: Message, after: Message) -> None:
        books = self._books
        books.count_state(before.queue_no, before.state, -1)
        if after.state in LIVE or after.state is State.DEAD:
            books.count_state(after.queue_no, after.state, +1)
        came_back = before.state is State.DEAD and after.state in LIVE
        if came_back or (after.queue_no != before.queue_no and after.state in LIVE):
            books.count(after.queue_no).sent_total += 1
            if not came_back and after.dead_from is None:
                # Redriven out of a dead-letter queue: there it counts as cancelled.
                books.count(before.queue_no).cancelled_total += 1
        if before.state is State.LEASED and books.limits_leases(before.queue_no):
            books.wake(before.queue_no)
        if after.state is State.READY:
            books.wake(after.queue_no)
        elif after.state in LIVE:
            books.wake(after.queue_no, 0)  # a new due date may be sooner than the known one

    def _let_next_come(self, before: Message, after: Message) -> None:
        left = after.state not in LIVE or after.queue_no != before.queue_no
        if before.group is None or before.state not in LIVE or not left:
            return
        if self._books.queue(before.queue_no).is_ordered:
            self._groups.add((before.queue_no, before.group))

    def _place(self, before: Message, after: Message) -> Message:
        """A group's order is judged anew when a message goes to the back of a line."""
        arrived = after.order_no == NEXT_ORDER
        if not arrived or after.state not in LIVE or after.group is None:
            return replace(after, is_blocked=after.is_blocked and not arrived)
        if not self._books.queue(after.queue_no).is_ordered:
            return replace(after, is_blocked=False)
        # Blocked at first; unblocked by save() if it turns out to be the first of its group.
        self._groups.add((after.queue_no, after.group))
        return replace(after, is_blocked=True)

    def _renumber(self) -> None:
        """Give those that go to the back of the line their new places, in the order noted."""
        back = [no for no, m in self._saves.items() if m.order_no == NEXT_ORDER]
        if back:
            numbers = self._books.take_numbers(len(back))
            for order_no, no in zip(numbers, back, strict=True):
                self._saves[no] = replace(self._saves[no], order_no=order_no)
        if self._books.steered:
            self._take_turns(set(back))

    def _take_turns(self, back: set[int]) -> None:
        """In fair queues: for those with a new place, and for those that join the line only now."""
        joining = [
            no
            for no, m in self._saves.items()
            if (no in back or (m.state is State.READY and m.turn == NO_POSITION))
            and m.state in LIVE
            and self._books.queue(m.queue_no).settings.is_fair
        ]
        if joining:
            places = [self._saves[no] for no in joining]
            turns = self._turns.take([(m.queue_no, m.priority, m.group) for m in places])
            for turn, no in zip(turns, joining, strict=True):
                self._saves[no] = replace(self._saves[no], turn=turn)

    def _judge(self, before: Message, after: Message, now: int) -> Message:
        """Where groups are limited, whoever comes or goes may let somebody else through."""
        if before.state is State.LEASED and after.state is State.LEASED:
            return after
        self._now = max(self._now, now)
        if before.gate and before.group is not None:
            self._limited.add((before.queue_no, before.group))
        settings = self._books.queue(after.queue_no).settings
        if after.state not in LIVE or after.group is None or not settings.limits_groups:
            if not after.gate:
                return after
            return replace(after, gate=NO_GATE, is_blocked=False)
        if after.state is State.LEASED or _falls_due_as_told(before, after, now):
            return replace(after, gate=ADMITTED, is_blocked=False)
        self._limited.add((after.queue_no, after.group))
        return replace(after, gate=HELD_BACK, is_blocked=True)


def _falls_due_as_told(before: Message, after: Message, now: int) -> bool:
    """It was let through for an instant, and that is here: not brought forward by hand."""
    has_waited = before.state is State.WAITING and before.due_at <= now
    return has_waited and after.state is State.READY and after.gate == ADMITTED


def _saved(m: Message) -> dict[str, Any]:
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
        "turn": m.turn,
        "gate": m.gate,
        "message_no": m.message_no,
    }
