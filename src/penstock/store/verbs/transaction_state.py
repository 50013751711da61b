"""What one transaction gathers and writes once at its end: counters, numbers, days, wake-ups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from penstock.domain.errors import QueueNotFound
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.queue.counts import Counts
from penstock.domain.queue.queue import DedupUntil, Queue, QueueSettings
from penstock.store.database import Answer, Database, Overtaken, Row
from penstock.store.partitions import Partitions

_STATES = {state.value: state for state in State}
_STATE_AT = Message.__struct_fields__.index("state")
_BLOCKED_AT = Message.__struct_fields__.index("is_blocked")
_RETRIES_AT = Message.__struct_fields__.index("retries_timeouts")
_UNTIL_AT = Message.__struct_fields__.index("dedup_until")
_settings = msgspec.json.Decoder(QueueSettings)


class Books:
    def __init__(self, db: Database, *, stripe: int = 0) -> None:
        self.db = db
        self.partitions = Partitions(db)
        self.stripe = stripe
        self._changes: dict[int, Counts] = {}
        self._queues: dict[int, Queue] = {}
        self._known: dict[Row, Queue] = {}  # by its whole row, over transactions
        self._ordered: dict[int, bool] = {}  # never changes in the life of a queue
        # Those with limits or fair share, as they were when they were read last.
        self.steered: dict[int, Queue] = {}
        self._asked: list[Answer] = []
        self._letters: dict[str, Queue | None] = {}
        self._locked: set[tuple[int, str]] = set()
        self._lined: set[int] = set()
        self.is_alone = False  # nobody else writes until the commit
        self.woken: dict[int, int] = {}

    def open(self) -> None:
        """Forget what belonged to the last transaction, whether it was kept or not."""
        self._changes = {}
        self._queues = {}
        self._asked = []
        self._letters = {}
        self._locked = set()
        self._lined = set()
        self.is_alone = False
        self.woken = {}
        self.partitions.open()

    def close(self) -> None:
        """Write the counters; to be called last before the commit."""
        if self._changes:
            # In order of number, so that two nodes cannot wait for each other's rows.
            rows = [
                (no, self.stripe, *msgspec.structs.astuple(change))
                for no, change in sorted(self._changes.items())
            ]
            self.db.insert("queues.count", rows)

    def count(self, queue_no: int) -> Counts:
        """The change of a queue's counters in this transaction, to be added to."""
        change = self._changes.get(queue_no)
        if change is None:
            change = self._changes[queue_no] = Counts()
        return change

    def count_state(self, queue_no: int, state: State, by: int) -> None:
        change = self.count(queue_no)
        setattr(change, state.value, getattr(change, state.value) + by)

    def wake(self, queue_no: int, count: int = 1) -> None:
        self.woken[queue_no] = self.woken.get(queue_no, 0) + count

    def ask_numbers(self, count: int) -> Answer:
        """See `numbers_of`; to be asked for before it is certain how many are needed."""
        return self.db.ask("messages.take_numbers", {"count": count})

    def take_numbers(self, count: int) -> Sequence[int]:
        """Numbers that nobody else gets, in growing order."""
        return numbers_of(self.ask_numbers(count))

    def lock_groups(self, groups: Iterable[tuple[int, str]]) -> None:
        """Until the commit nobody else lets messages into these groups or out of them."""
        if self.db.is_shared:
            missing = set(groups) - self._locked
            if missing:
                self.db.post("messages.lock_groups", {"groups": json_list(sorted(missing))})
                self._locked |= missing

    def try_groups(self, groups: set[tuple[int, str]]) -> set[tuple[int, str]]:
        """The same, without waiting: tells which of them are locked now."""
        if not groups:
            return groups
        params = {"groups": json_list(sorted(groups))}
        free = {(no, group) for no, group in self.db.rows("messages.try_groups", params)}
        self._locked |= free
        return free

    def lock_lines(self, queue_nos: Iterable[int]) -> None:
        """Until the commit nobody else comes into these queues or claims, if they are steered.

        By what is known of them: `need_lines` tells if that was too little.
        """
        if self.db.is_shared and self.steered:
            missing = self.steered.keys() & set(queue_nos) - self._lined
            if missing:
                self.db.post("queues.lock_lines", {"queue_nos": json_list(sorted(missing))})
                self._lined |= missing

    def steered_of(self, queue_nos: set[int]) -> set[int]:
        self.load_queues(queue_nos)
        return self.steered.keys() & queue_nos

    def limits_leases(self, queue_no: int) -> bool:
        """Does a lease that ends let somebody else claim?  By what is known: a hint at worst."""
        known = self.steered.get(queue_no) if self.steered else None
        return known is not None and known.settings.max_leased is not None

    def try_line(self, queue_no: int) -> bool:
        """The same without waiting: tells whether it is ours."""
        if self.db.is_shared and queue_no in self.steered and queue_no not in self._lined:
            params = {"queue_nos": json_list([queue_no])}
            self._lined |= {no for (no,) in self.db.rows("queues.try_lines", params)}
            return queue_no in self._lined
        return True

    def need_lines(self, queue_nos: Iterable[int]) -> None:
        """From here on it is too late to wait for them; once more, and they come first."""
        if self.db.is_shared and not self.is_alone:
            missing = {no for no in queue_nos if self.queue(no).is_steered} - self._lined
            if missing:
                raise Overtaken("a queue has got limits meanwhile")

    def ask_queues(self, queue_nos: set[int]) -> None:
        """Have queues read that are looked at later; from here on none of all can be removed."""
        missing = queue_nos - self._queues.keys()
        if missing:
            params = {"queue_nos": json_list(sorted(missing))}
            self._asked.append(self.db.ask("queues.by_nos", params))

    def load_queues(self, queue_nos: set[int]) -> None:
        """Read the queues of a batch as they are now, in one statement."""
        missing = queue_nos - self._queues.keys()
        while missing and self._asked:
            self._take_in(self._asked.pop())
            missing -= self._queues.keys()
        if missing:
            self._take_in(self.db.ask("queues.by_nos", {"queue_nos": json_list(missing)}))

    def _take_in(self, answer: Answer) -> None:
        for row in answer.rows():
            self._know(self.queue_of(row))

    def _know(self, queue: Queue) -> Queue:
        self._queues[queue.queue_no] = queue
        self._ordered[queue.queue_no] = queue.is_ordered
        if queue.is_steered:
            self.steered[queue.queue_no] = queue
        elif self.steered:
            self.steered.pop(queue.queue_no, None)
        return queue

    def ordered_of(self, queue_nos: set[int]) -> set[int]:
        """Those of them that are ordered by group."""
        self.load_queues(queue_nos - self._ordered.keys())
        return {no for no in queue_nos if self._ordered.get(no)}

    def is_ordered(self, queue_no: int) -> bool:
        known = self._ordered.get(queue_no)
        return self.queue(queue_no).is_ordered if known is None else known

    def queue(self, queue_no: int) -> Queue:
        """The queue as it is in this transaction, or QueueNotFound."""
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
        """Where its dead messages go, if there is such a queue."""
        name = queue.settings.dead_letter_queue
        if name is None:
            return None
        if name not in self._letters:
            self._letters[name] = self.queue_named(name)
        return self._letters[name]

    def ordered_letters_of(self, queue_nos: set[int]) -> dict[int, int]:
        """By queue, the number of its dead-letter queue, where that one is ordered by group."""
        self.load_queues(queue_nos)
        found = {}
        for no in queue_nos & self._queues.keys():
            target = self.dead_letter_queue_of(self._queues[no])
            if target is not None and target.is_ordered:
                found[no] = target.queue_no
        return found

    def letters_of(self, queue_nos: set[int]) -> set[int]:
        """The dead-letter queues of queues that were read before."""
        found = (
            self.dead_letter_queue_of(self._queues[no]) for no in queue_nos & self._queues.keys()
        )
        return {target.queue_no for target in found if target is not None}

    def forget_queue(self, queue_no: int) -> None:
        self._queues.pop(queue_no, None)
        self._letters = {}

    def queue_of(self, row: Row) -> Queue:
        """Settings are parsed once; a number and a version may come again after a rollback."""
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


def numbers_of(answer: Answer) -> Sequence[int]:
    """Runs of numbers, one after the other."""
    runs = answer.rows()
    if len(runs) == 1:
        [(first, count)] = runs
        return range(first, first + count)
    return [no for first, count in runs for no in range(first, first + count)]


def json_list(values: object) -> str:
    """Integers or pairs as the text that a query unpacks."""
    return msgspec.json.encode(values).decode()
