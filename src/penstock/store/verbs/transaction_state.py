"""The state of one transaction: counters to add, locks, queues read, wake-ups."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from penstock.domain.errors import QueueNotFound
from penstock.domain.message.lifecycle import NEXT_ORDER, Message, State
from penstock.domain.queue.queue import Counts, DedupUntil, Queue, QueueSettings
from penstock.store.announcements import Hints
from penstock.store.database import Database, QueryResult, Row, RowsChanged
from penstock.store.dead_rows.dead_rows import DeadRows, place_of
from penstock.store.partitions import Partitions
from penstock.store.verbs.counter_rows import CounterRows

_STATES = {state.value: state for state in State}
_STATE_AT = Message.__struct_fields__.index("state")
_BLOCKED_AT = Message.__struct_fields__.index("is_blocked")
_RETRIES_AT = Message.__struct_fields__.index("retries_timeouts")
_UNTIL_AT = Message.__struct_fields__.index("dedup_until")
_settings = msgspec.json.Decoder(QueueSettings)


class EndingWatch:
    """Whether this process waits for messages to end; shared by the connections of a store."""

    is_on = False


class TransactionState:
    def __init__(self, db: Database, *, counter_rows: CounterRows) -> None:
        self.db = db
        self.partitions = Partitions(db)
        self.counter_rows = counter_rows
        self._changes: dict[int, Counts] = {}
        self._queues: dict[int, Queue] = {}
        self._known: dict[Row, Queue] = {}  # by its whole row, across transactions
        self._ordered: dict[int, bool] = {}  # fixed when a queue is created
        # Queues with limits or fair share, as last read.
        self.limited_queues: dict[int, Queue] = {}
        self._asked: list[QueryResult] = []
        self._dead_letter_queues: dict[str, Queue | None] = {}
        self._locked_groups: set[tuple[int, str]] = set()
        self._locked_queues: set[int] = set()
        self.is_alone = False  # all other writers are locked out until the commit
        self.can_start_over = True  # False: the transaction is the caller's
        # Locks that this transaction found it needs when it was too late to wait for them.
        self.first_queues: set[int] = set()
        self.first_groups: set[tuple[int, str]] = set()
        self.woken: dict[int, int] = {}
        self.sent_nos: Collection[int] = ()  # of the messages that this transaction sends
        # Ids of messages that ended.  Completions without a result are too many to announce: only
        # this process hears of them, and only while it waits for messages.
        self.ended: list[str] = []
        self.ended_here: list[str] = []
        self.watch = EndingWatch()
        self.dead_rows = DeadRows()  # PostgreSQL: shared by the connections of a store
        self._claimed: list[tuple[int, Sequence[Message]]] = []

    def open(self) -> None:
        """Forget the last transaction, whether it was committed or not."""
        self._changes = {}
        self._queues = {}
        self._asked = []
        self._dead_letter_queues = {}
        self._locked_groups = set()
        self._locked_queues = set()
        self.is_alone = False
        self.woken = {}
        self.sent_nos = ()
        self.ended = []
        self.ended_here = []
        if self._claimed:
            self._claimed = []
        self.partitions.open()

    def close(self) -> None:
        """Write the counters; call it right before the commit."""
        if self.first_queues or self.first_groups:
            self.first_queues, self.first_groups = set(), set()
        if self._changes:
            self.counter_rows.add(self.db, self._changes)

    def committed(self) -> None:
        """Call it right after the commit."""
        for queue_no, messages in self._claimed:
            self.dead_rows.note_claimed(queue_no, messages)

    def count(self, queue_no: int) -> Counts:
        """The changes of a queue's counters in this transaction; callers add to them."""
        change = self._changes.get(queue_no)
        if change is None:
            change = self._changes[queue_no] = Counts()
        return change

    def count_state(self, queue_no: int, state: State, by: int) -> None:
        change = self.count(queue_no)
        setattr(change, state.value, getattr(change, state.value) + by)

    def wake(self, queue_no: int, count: int = 1) -> None:
        self.woken[queue_no] = self.woken.get(queue_no, 0) + count

    def note_claim(
        self, queue_no: int, kinds: Sequence[str] | None, *, now: int, due_at: int
    ) -> None:
        """Claims read the front of this queue."""
        if self.dead_rows.is_watched and queue_no not in self.limited_queues:
            self.dead_rows.note_claim(queue_no, kinds, now=now, due_at=due_at)

    def parts(self, queue_no: int, kind: str | None = None) -> list[list[object]] | None:
        """Where a claim has to look for messages; None: everywhere.

        Limits make messages claimable in many places at once, so there it is everywhere.
        """
        if queue_no not in self.dead_rows.queues or queue_no in self.limited_queues:
            return None
        return self.dead_rows.parts(queue_no, kind)

    def note_ready(self, m: Message, message_no: int) -> None:
        """A message may have become claimable."""
        if m.state is State.READY and not m.is_blocked and m.queue_no in self.dead_rows.queues:
            place = place_of(m)
            if m.order_no == NEXT_ORDER:
                place = (m.priority, m.fair_position, message_no)
            self.dead_rows.note_ready(m.queue_no, m.kind, place)

    def note_claimed(self, queue_no: int, messages: Sequence[Message]) -> None:
        """No wake-up is needed for messages that the same transaction sends and claims."""
        if queue_no in self.dead_rows.queues:
            self._claimed.append((queue_no, messages))
        if self.sent_nos and queue_no in self.woken:
            left = self.woken[queue_no] - sum(m.message_no in self.sent_nos for m in messages)
            if left > 0 or self.count(queue_no).waiting > 0:  # 0: there is a new due date
                self.woken[queue_no] = max(left, 0)
            else:
                del self.woken[queue_no]

    def hints(self) -> Hints:
        return Hints(self.woken, self.ended, self.ended_here)

    def ask_numbers(self, count: int) -> QueryResult:
        """Request numbers before it is certain how many are needed; read them with `numbers_of`."""
        return self.db.ask("messages.take_numbers", {"count": count})

    def take_numbers(self, count: int) -> Sequence[int]:
        """Unique numbers in ascending order."""
        return numbers_of(self.ask_numbers(count))

    def lock_signals(self, names: Iterable[str]) -> None:
        """Keep other transactions from sending these signals, or waiting for them."""
        if self.db.is_shared:
            self.db.post("signals.lock", {"names": json_list(sorted(names))})

    def lock_groups(self, groups: Iterable[tuple[int, str]]) -> None:
        """Keep other transactions from adding or removing messages of these groups."""
        if self.db.is_shared:
            missing = set(groups) - self._locked_groups
            if missing:
                self.db.post("messages.lock_groups", {"groups": json_list(sorted(missing))})
                self._locked_groups |= missing

    def take_first(self, queue_nos: set[int], groups: set[tuple[int, str]]) -> None:
        """Remember locks for the next try of this transaction, which takes them in order."""
        self.first_queues |= queue_nos
        self.first_groups |= groups

    def lock_first(self) -> None:
        """Take the locks that an earlier try of this transaction had to wait for."""
        if self.first_queues or self.first_groups:
            self.load_queues(self.first_queues | {no for no, _ in self.first_groups})
            self.lock_queues(self.first_queues)
            self.lock_groups(self.first_groups)

    def missing_groups(self, groups: set[tuple[int, str]]) -> set[tuple[int, str]]:
        return groups - self._locked_groups

    def try_lock_groups(self, groups: set[tuple[int, str]]) -> set[tuple[int, str]]:
        """Lock without waiting; returns the groups that are locked now."""
        if not groups:
            return groups
        params = {"groups": json_list(sorted(groups))}
        free = {(no, group) for no, group in self.db.rows("messages.try_lock_groups", params)}
        self._locked_groups |= free
        return free

    def lock_queues(self, queue_nos: Iterable[int]) -> None:
        """Lock the rows of limited queues: other transactions can neither send nor claim.

        Which queues are limited is known from the last read; `require_queue_locks` raises if that
        is outdated.
        """
        if self.db.is_shared and self.limited_queues:
            missing = self.limited_queues.keys() & set(queue_nos) - self._locked_queues
            if missing:
                self.db.post("queues.lock_queues", {"queue_nos": json_list(sorted(missing))})
                self._locked_queues |= missing

    def limited_of(self, queue_nos: set[int]) -> set[int]:
        self.load_queues(queue_nos)
        return self.limited_queues.keys() & queue_nos

    def limits_leases(self, queue_no: int) -> bool:
        """Whether the end of a lease makes room for a claim; as last read, so only a hint."""
        known = self.limited_queues.get(queue_no) if self.limited_queues else None
        return known is not None and known.settings.max_leased is not None

    def try_lock_queue(self, queue_no: int) -> bool:
        """Lock without waiting; returns whether we have the lock or need none."""
        if (
            self.db.is_shared
            and queue_no in self.limited_queues
            and queue_no not in self._locked_queues
        ):
            params = {"queue_nos": json_list([queue_no])}
            self._locked_queues |= {no for (no,) in self.db.rows("queues.try_lock_queues", params)}
            return queue_no in self._locked_queues
        return True

    def require_queue_locks(self, queue_nos: Iterable[int]) -> None:
        """Raises RowsChanged if a lock is missing: the retry takes it first."""
        if self.db.is_shared and not self.is_alone:
            missing = {no for no in queue_nos if self.queue(no).has_limits} - self._locked_queues
            if missing:
                raise RowsChanged("a queue has been given limits meanwhile")

    def ask_queues(self, queue_nos: set[int]) -> None:
        """Send a query for queues that are needed later; from now on no queue can be removed."""
        missing = queue_nos - self._queues.keys()
        if missing:
            params = {"queue_nos": json_list(sorted(missing))}
            self._asked.append(self.db.ask("queues.by_nos", params))

    def load_queues(self, queue_nos: set[int]) -> None:
        """Read queues as they are now, in one statement."""
        missing = queue_nos - self._queues.keys()
        while missing and self._asked:
            self._take_in(self._asked.pop())
            missing -= self._queues.keys()
        if missing:
            self._take_in(self.db.ask("queues.by_nos", {"queue_nos": json_list(missing)}))

    def _take_in(self, answer: QueryResult) -> None:
        for row in answer.rows():
            self._know(self.queue_of(row))

    def _know(self, queue: Queue) -> Queue:
        self._queues[queue.queue_no] = queue
        self._ordered[queue.queue_no] = queue.is_ordered
        if queue.has_limits:
            self.limited_queues[queue.queue_no] = queue
        elif self.limited_queues:
            self.limited_queues.pop(queue.queue_no, None)
        return queue

    def ordered_of(self, queue_nos: set[int]) -> set[int]:
        """Which of these queues are ordered by group."""
        self.load_queues(queue_nos - self._ordered.keys())
        return {no for no in queue_nos if self._ordered.get(no)}

    def rotating_of(self, queue_nos: set[int]) -> set[int]:
        """Those of these queues in which a position says when a group has its turn."""
        return {no for no in queue_nos if self.queue(no).settings.rotates_groups}

    def is_ordered(self, queue_no: int) -> bool:
        known = self._ordered.get(queue_no)
        return self.queue(queue_no).is_ordered if known is None else known

    def queue(self, queue_no: int) -> Queue:
        """The queue as it is in this transaction; raises QueueNotFound."""
        if queue_no not in self._queues:
            self.load_queues({queue_no})
        found = self._queues.get(queue_no)
        if found is None:
            raise QueueNotFound(queue_no)
        return found

    def queue_named(self, name: str) -> Queue | None:
        rows = self.db.rows("queues.by_name", {"name": name})
        return self._know(self.queue_of(rows[0])) if rows else None

    def dead_letter_queue_of(self, queue: Queue) -> Queue | None:
        """The queue for its dead messages, if it exists."""
        name = queue.settings.dead_letter_queue
        if name is None:
            return None
        if name not in self._dead_letter_queues:
            self._dead_letter_queues[name] = self.queue_named(name)
        return self._dead_letter_queues[name]

    def ordered_dead_letter_queues(self, queue_nos: set[int]) -> dict[int, int]:
        """The numbers of dead-letter queues that are ordered by group, by source queue."""
        self.load_queues(queue_nos)
        found = {}
        for no in queue_nos & self._queues.keys():
            target = self.dead_letter_queue_of(self._queues[no])
            if target is not None and target.is_ordered:
                found[no] = target.queue_no
        return found

    def dead_letter_queues_of(self, queue_nos: set[int]) -> set[int]:
        """The dead-letter queues of queues that were read already."""
        found = (
            self.dead_letter_queue_of(self._queues[no]) for no in queue_nos & self._queues.keys()
        )
        return {target.queue_no for target in found if target is not None}

    def forget_queue(self, queue_no: int) -> None:
        self._queues.pop(queue_no, None)
        self._dead_letter_queues = {}

    def queue_of(self, row: Row) -> Queue:
        """Cached by the whole row: after a rollback, number and version may get other settings."""
        found = self._known.get(row)
        if found is None:
            queue_no, name, settings, is_paused, version, created_at, changed_at, held_by = row
            found = Queue(
                queue_no=queue_no,
                name=name,
                settings=_settings.decode(settings),
                created_at=created_at,
                changed_at=changed_at,
                is_paused=bool(is_paused),
                version=version,
                held_by=held_by,
            )
            if len(self._known) > 20_000:
                self._known.clear()
            self._known[row] = found
        return found


def message_of(row: Row) -> Message:
    values = list(row)
    values[_STATE_AT] = _STATES[values[_STATE_AT]]
    values[_BLOCKED_AT] = values[_BLOCKED_AT] == 1  # a comparison is cheaper than a call
    values[_RETRIES_AT] = values[_RETRIES_AT] == 1
    if values[_UNTIL_AT] is not None:
        values[_UNTIL_AT] = DedupUntil(values[_UNTIL_AT])
    return Message(*values)


def numbers_of(answer: QueryResult) -> Sequence[int]:
    """The numbers of an answer that consists of ranges: first number and count."""
    runs = answer.rows()
    if len(runs) == 1:
        [(first, count)] = runs
        return range(first, first + count)
    return [no for first, count in runs for no in range(first, first + count)]


def json_list(values: object) -> str:
    """A list as JSON text, which a query unpacks."""
    return msgspec.json.encode(values).decode()
