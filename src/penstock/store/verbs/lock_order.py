"""The order in which locks are taken where several nodes write; locks the messages of bulk steps.

    names of signals → the day's tables → topics → the list of queues → claim keys → rows of queues
    with limits or fair share → groups → dedup keys → messages → flows → buckets, shares → counters

A transaction that waits for a lock holds none that comes later in this order, and takes all locks
of one kind at once and sorted, which prevents deadlocks.  A bulk step does not know the groups of
its messages in advance.  It reads messages without locks, locks their groups, then the messages,
and works on those that have not changed.  It waits for one message at most, and only while it has
locked no other.

A flow is locked by the transaction that ends one of its members, after its messages.  Members that
are released then enter queues and groups: their locks are tried, and if one is taken, the
transaction starts over with it (flow_releases.py).  Members that wait are not messages, so no other
transaction locks them.

Claims, and steps that return or expire messages, may lock in any order: they wait only for the
row of their queue, before anything else.  The release of a dedup key that is held without a time
window may come at any point, too: no other transaction locks that key (dedup_claims.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.domain.errors import MessageNotFound
from penstock.domain.limits import DAY
from penstock.domain.message.lifecycle import Message, State
from penstock.store.database import RowsChanged
from penstock.store.verbs.transaction_state import TransactionState, json_list, message_of

Pick = Callable[[str], list[Message]]  # takes the locking clause of its query
Group = tuple[int, str]

NO_LOCK = ""


class LockOrder:
    def __init__(self, transaction: TransactionState) -> None:
        self._transaction = transaction
        self._db = transaction.db
        self._to_special: set[int] = set()  # with dead letters of ordered or limited queues

    def begin(self, queue_nos: set[int], *, now: int) -> None:
        """Take the locks that come before all others."""
        if self._db.is_shared:
            self._load(queue_nos, now=now)
            self._transaction.lock_queues(queue_nos)

    def _load(self, queue_nos: set[int], *, now: int) -> None:
        self._transaction.partitions.ensure(now // DAY)
        self._transaction.load_queues(queue_nos)

    def lock_all(self, queue_no: int, pick: Pick, *, now: int) -> list[Message]:
        """Lock messages that end in their queue; [] only if there are none."""
        if not self._db.is_shared:
            return pick(NO_LOCK)
        self.begin({queue_no}, now=now)
        if self._transaction.ordered_of({queue_no}):
            return self._lock_seen(pick(NO_LOCK), to=queue_no)
        return pick(self._skip_locked) or self._lock_seen(pick(NO_LOCK)[:1], to=queue_no)

    def lock_to_move(self, queue_no: int, pick: Pick, *, to: int | None, now: int) -> list[Message]:
        """Lock messages that move to `to`, or to where they died, and their groups there."""
        if not self._db.is_shared:
            return pick(NO_LOCK)
        if to is None:
            return self._lock_to_redrive(queue_no, pick, now=now)
        ends = {queue_no, to}
        self.begin(ends, now=now)
        if self._transaction.ordered_of(ends):
            return self._lock_seen(pick(NO_LOCK), to=to)
        return pick(self._skip_locked)

    def _lock_to_redrive(self, queue_no: int, pick: Pick, *, now: int) -> list[Message]:
        """Targets are known only after reading the messages; all queue rows are locked at once."""
        self._load({queue_no}, now=now)
        is_special = (
            self._transaction.ordered_of({queue_no}) or queue_no in self._transaction.limited_queues
        )
        if is_special or queue_no in self._to_special:
            return self._lock_seen(pick(NO_LOCK), to=None)
        found = pick(self._skip_locked)
        homes = {m.dead_from or m.queue_no for m in found}
        if self._groups(found, to=None) or self._transaction.limited_of(homes):
            # Known only now that the messages are locked: retry in the right order.
            self._to_special.add(queue_no)
            raise RowsChanged("messages return to an ordered or limited queue")
        return found

    def lock_one(self, message_id: str, *, now: int) -> Message:
        """Lock a message to be cancelled, rescheduled, buried or redriven by hand."""
        seen = self._lock_for_message(message_id, now=now) if self._db.is_shared else None
        rows = self._db.rows("messages.by_id_to_change", {"id": message_id})
        if not rows:
            raise MessageNotFound(message_id)
        found = message_of(rows[0])
        if seen is not None and _where(found) != _where(seen):
            raise RowsChanged("the message has moved meanwhile")
        return found

    def lock_these(self, seen: Sequence[Message], *, now: int) -> list[Message]:
        """Lock messages that were read before; those that have changed since are left out."""
        if not self._db.is_shared or not seen:
            return list(seen)
        ends = {no for m in seen for no in (m.queue_no, m.dead_from or m.queue_no)}
        self._load(ends, now=now)
        return self._lock_seen(seen, to=None)

    def lock_by_no(self, message_nos: Sequence[int], *, now: int) -> list[Message]:
        """Lock messages to be made due, waiting for each; those that have ended are left out."""
        params = {"message_nos": json_list(sorted(message_nos))}
        if not self._db.is_shared:
            return list(map(message_of, self._db.rows("messages.by_no", params)))
        seen = {
            m.message_no: m for m in map(message_of, self._db.rows("messages.by_numbers", params))
        }
        ends = {no for m in seen.values() for no in (m.queue_no, m.dead_from or m.queue_no)}
        self._load(ends, now=now)
        self._transaction.lock_queues(ends)
        self._transaction.lock_groups(self._groups(list(seen.values()), to=None))
        found = list(map(message_of, self._db.rows("messages.by_no", params)))
        if any(_where(m) != _where(seen[m.message_no]) for m in found):
            raise RowsChanged("messages have moved meanwhile")
        return found

    def locks_for(self, message_id: str, *, now: int) -> tuple[set[int], set[Group]]:
        """The queue rows and groups that `lock_one` locks, for a caller that locks others first."""
        rows = self._db.rows("messages.by_id", {"id": message_id}) if self._db.is_shared else []
        return self._locks_for(message_of(rows[0]), now=now) if rows else (set(), set())

    def skip_contended(self, queue_no: int, messages: list[Message]) -> list[Message]:
        """Leave out messages that may die if their dead-letter queue or group is locked.

        They are locked already, so waiting could deadlock; the next sweep finds them again.
        """
        if not self._db.is_shared:
            return messages
        if not self._can_lock_dead_letter_queue(queue_no, messages):
            messages = [m for m in messages if m.state is not State.LEASED]
        leased = [m for m in messages if m.state is State.LEASED and m.group is not None]
        wanted = self._dead_letter_groups(leased)
        if not wanted:
            return messages
        busy = {group for _, group in wanted - self._transaction.try_lock_groups(wanted)}
        return [m for m in messages if m.state is not State.LEASED or m.group not in busy]

    def _can_lock_dead_letter_queue(self, queue_no: int, messages: list[Message]) -> bool:
        """Whether we have the lock of the dead-letter queue they may enter, if it needs one."""
        if not any(m.state is State.LEASED for m in messages):
            return True
        target = self._transaction.dead_letter_queue_of(self._transaction.queue(queue_no))
        return target is None or self._transaction.try_lock_queue(target.queue_no)

    @property
    def _skip_locked(self) -> str:
        return self._db.text("messages.skip_locked")

    def _lock_for_message(self, message_id: str, *, now: int) -> Message:
        rows = self._db.rows("messages.by_id", {"id": message_id})
        if not rows:
            raise MessageNotFound(message_id)
        seen = message_of(rows[0])
        queue_nos, groups = self._locks_for(seen, now=now)
        self._transaction.lock_queues(queue_nos)
        self._transaction.lock_groups(groups)
        return seen

    def _locks_for(self, seen: Message, *, now: int) -> tuple[set[int], set[Group]]:
        ends = {seen.queue_no, seen.dead_from or seen.queue_no}
        self._load(ends, now=now)
        groups = self._groups([seen], to=None) | self._dead_letter_groups([seen])
        return ends | self._transaction.dead_letter_queues_of({seen.queue_no}), groups

    def _lock_seen(self, seen: Sequence[Message], *, to: int | None) -> list[Message]:
        if not seen:
            return []
        groups = self._groups(seen, to=to)
        if to is None:
            ends = {no for m in seen for no in (m.queue_no, m.dead_from or m.queue_no)}
            self._transaction.load_queues(ends)
            self._transaction.lock_queues(ends)
        self._transaction.lock_groups(groups)
        nos = [m.message_no for m in seen]
        rows = self._db.rows("messages.unlocked_by_no", {"message_nos": json_list(nos)})
        if not rows:  # other transactions have locked them all
            rows = self._db.rows("messages.by_no", {"message_nos": json_list(nos[:1])})
        held = {m.message_no: m for m in map(message_of, rows)}
        still = [m for m in seen if held.get(m.message_no) == m]
        if not still:
            raise RowsChanged("others have changed these messages meanwhile")
        return still

    def _groups(self, messages: Sequence[Message], *, to: int | None) -> set[Group]:
        """The groups that they leave or enter, of queues ordered by group."""
        pairs = {
            (no, m.group)
            for m in messages
            if m.group is not None
            for no in (m.queue_no, to or m.dead_from or m.queue_no)
        }
        ordered = self._transaction.ordered_of({no for no, _ in pairs})
        return {(no, group) for no, group in pairs if no in ordered}

    def _dead_letter_groups(self, messages: Sequence[Message]) -> set[Group]:
        """The groups that they enter if they die."""
        pairs = {(m.queue_no, m.group) for m in messages if m.group is not None}
        targets = self._transaction.ordered_dead_letter_queues({no for no, _ in pairs})
        return {(targets[no], group) for no, group in pairs if no in targets}


def _where(message: Message) -> tuple[int, int | None]:
    return message.queue_no, message.dead_from
