"""Sends: all messages of a batch in a few statements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from penstock.domain.errors import PenstockError, QueueFull, QueueNotFound
from penstock.domain.limits import DAY
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.lifecycle import Message, State
from penstock.ports.store import Sent
from penstock.store.database import Collision, Row
from penstock.store.limits.arrivals import Arrivals
from penstock.store.verbs.dedup_claims import NO_END, stored_key
from penstock.store.verbs.lock_order import LockOrder
from penstock.store.verbs.transaction_state import TransactionState, json_list, numbers_of

Answers = list[Sent | PenstockError | None]  # None: accepted so far
Keyed = dict[tuple[int, str], list[int]]  # by queue and stored key: indexes in the batch

_encode = msgspec.json.Encoder().encode


class Sends:
    def __init__(self, transaction: TransactionState) -> None:
        self._transaction = transaction
        self._arrivals = Arrivals(transaction)
        self._lock_order = LockOrder(transaction)
        self._db = transaction.db

    def send(self, new: Sequence[NewMessage]) -> list[Sent | PenstockError]:
        transaction = self._transaction
        # Numbers are also places in the queue, so a group must be locked before numbers are taken:
        # where locks are needed, the transaction has them already.
        asked = transaction.ask_numbers(len(new))
        transaction.load_queues({n.message.queue_no for n in new})
        answers = self._unknown_queues(new)
        numbers = numbers_of(asked)
        transaction.sent_nos = numbers if isinstance(numbers, range) else set(numbers)
        keyed = self._group_by_key(new, answers)
        if keyed:
            self._answer_known(keyed, answers, now=max(n.message.sent_at for n in new))
        self.refuse_overfull(new, answers, keyed)
        if keyed:
            self._take_keys(new, numbers, answers, keyed)
        blocked = self.find_blocked(new, answers)
        accepted = [i for i, answer in enumerate(answers) if answer is None]
        if accepted:
            limited_queues = (
                self._place_limited(new, numbers, accepted) if transaction.limited_queues else {}
            )
            self._store([(new[i], numbers[i], blocked[i]) for i in accepted], limited_queues)
            for i in accepted:
                answers[i] = Sent(new[i].message.id, message_no=numbers[i])
        return answers  # type: ignore[return-value]

    def lock(self, new: Sequence[NewMessage], *, before: str | None = None) -> None:
        """Take the locks of a transaction that does more than send, before anything else.

        `before`: a message that is changed by hand afterwards; its locks are taken here, too.
        """
        if self._db.is_shared and new:
            queue_nos = {n.message.queue_no for n in new}
            now = max(n.message.sent_at for n in new)
            self._transaction.partitions.ensure(now // DAY)
            self._transaction.load_queues(queue_nos)
            others: set[int] = set()
            groups: set[tuple[int, str]] = set()
            if before is not None:
                others, groups = self._lock_order.locks_for(before, now=now)
            self._transaction.lock_queues(queue_nos | others)
            self._transaction.lock_groups(self.groups(new) | groups)

    def groups(self, new: Sequence[NewMessage]) -> set[tuple[int, str]]:
        """The groups that messages will enter, of queues ordered by group."""
        pairs = {(n.message.queue_no, n.message.group) for n in new if n.message.group is not None}
        ordered = self._transaction.ordered_of({queue_no for queue_no, _ in pairs})
        return {(queue_no, group) for queue_no, group in pairs if queue_no in ordered}

    def _unknown_queues(self, new: Sequence[NewMessage]) -> Answers:
        answers: Answers = [None] * len(new)
        unknown = {no for no in {n.message.queue_no for n in new} if not self._is_known(no)}
        if unknown:
            for i, n in enumerate(new):
                if n.message.queue_no in unknown:
                    answers[i] = QueueNotFound(n.message.queue_no)
        return answers

    def _is_known(self, queue_no: int) -> bool:
        try:
            self._transaction.queue(queue_no)
        except QueueNotFound:
            return False
        return True

    def _group_by_key(self, new: Sequence[NewMessage], answers: Answers) -> Keyed:
        """The indexes of each dedup key in this batch; a window of 0 means no deduplication."""
        keyed: Keyed = {}
        for i, n in enumerate(new):
            m = n.message
            if m.dedup_key is None or answers[i] is not None:
                continue
            settings = self._transaction.queue(m.queue_no).settings
            if self._window(n) or m.dedup_until is not None:
                key = stored_key(settings.dedup_scope, m.group, m.dedup_key)
                keyed.setdefault((m.queue_no, key), []).append(i)
        return keyed

    def _answer_known(self, keyed: Keyed, answers: Answers, *, now: int) -> None:
        """Answer messages whose key is taken as duplicates; only free keys stay in `keyed`."""
        keys = json_list(sorted(keyed))
        self._db.post("dedup.free", {"keys": keys, "now": now})
        for queue_no, key, message_id, message_no in self._db.rows("dedup.known", {"keys": keys}):
            for i in keyed.pop((queue_no, key)):
                answers[i] = Sent(message_id, is_duplicate=True, message_no=message_no)

    def refuse_overfull(self, new: Sequence[NewMessage], answers: Answers, keyed: Keyed) -> None:
        """Refuse messages beyond `max_messages`; duplicates do not count."""
        repeated = {i for places in keyed.values() for i in places[1:]}
        room: dict[int, int] = {}
        limited = {n.message.queue_no for i, n in enumerate(new) if answers[i] is None}
        limited = {
            no for no in limited if self._transaction.queue(no).settings.max_messages is not None
        }
        if not limited:
            return
        self._db.post("queues.lock_room", {"queue_nos": json_list(sorted(limited))})
        for i, n in enumerate(new):
            queue_no = n.message.queue_no
            if answers[i] is not None or i in repeated:
                continue
            queue = self._transaction.queue(queue_no)
            limit = queue.settings.max_messages
            if limit is None:
                continue
            if queue_no not in room:
                room[queue_no] = limit - self._live(queue_no)
            room[queue_no] -= 1
            if room[queue_no] < 0:
                answers[i] = QueueFull(
                    f"queue {queue.name!r} has reached its limit of {limit} messages"
                )

    def _live(self, queue_no: int) -> int:
        rows = self._db.rows("queues.counts", {"queue_nos": json_list([queue_no])})
        stored = sum(rows[0][1:4]) if rows else 0
        return int(stored) + self._transaction.count(queue_no).live

    def _take_keys(
        self,
        new: Sequence[NewMessage],
        numbers: Sequence[int],
        answers: Answers,
        keyed: Keyed,
    ) -> None:
        """Take the keys of accepted messages; the same key again in the batch is a duplicate."""
        free = {key: places[0] for key, places in sorted(keyed.items())}
        free = {key: i for key, i in free.items() if answers[i] is None}
        rows = [self._key_row(key, new[i], numbers[i]) for (_, key), i in free.items()]
        taken = {row[0] for row in self._db.insert("dedup.take", rows)} if rows else set()
        lost = {key: keyed.pop(key) for key, i in free.items() if new[i].message.id not in taken}
        if lost:  # another node was faster
            self._answer_known(lost, answers, now=0)
            if lost:
                raise Collision("a dedup key was released just now")
        for first_place, *others in keyed.values():
            for i in others:
                first = new[first_place].message.id
                sent = Sent(first, is_duplicate=True, message_no=numbers[first_place])
                answers[i] = answers[first_place] or sent

    def _key_row(self, key: str, n: NewMessage, message_no: int) -> Row:
        m = n.message
        until_at = m.sent_at + self._window(n) if m.dedup_until is None else NO_END
        return (m.queue_no, key, m.id, message_no, until_at)

    def _window(self, n: NewMessage) -> int:
        if n.dedup_window_ms is not None:
            return n.dedup_window_ms
        return self._transaction.queue(n.message.queue_no).settings.dedup_window_ms

    def find_blocked(self, new: Sequence[NewMessage], answers: Answers) -> list[bool]:
        """In a queue ordered by group, a message behind another of its group is blocked."""
        blocked = [False] * len(new)
        groups = self.groups([n for i, n in enumerate(new) if answers[i] is None])
        if not groups:
            return blocked
        self._transaction.lock_groups(groups)
        params = {"groups": json_list(sorted(groups))}
        busy = {(q, g) for q, g in self._db.rows("messages.live_groups", params)}
        for i, n in enumerate(new):
            pair = (n.message.queue_no, n.message.group)
            if pair in groups and answers[i] is None:
                blocked[i] = pair in busy
                busy.add(pair)
        return blocked

    def _place_limited(
        self, new: Sequence[NewMessage], numbers: Sequence[int], accepted: list[int]
    ) -> dict[int, Message]:
        """Messages for queues with limits or fair share, with gate and position, by number."""
        limited_queues = self._transaction.limited_queues
        arriving = {
            i: new[i].message for i in accepted if new[i].message.queue_no in limited_queues
        }
        return {numbers[i]: m for i, m in self._arrivals.place(arriving).items()}

    def _store(
        self, accepted: list[tuple[NewMessage, int, bool]], limited_queues: dict[int, Message]
    ) -> None:
        rows: list[Row] = []
        jobs: list[Row] = []
        placed: list[Row] = []
        bodies: dict[int, list[Row]] = {}
        sent: defaultdict[tuple[int, State], int] = defaultdict(int)
        rotating = self._transaction.rotating_of({n.message.queue_no for n, _, _ in accepted})
        if self._transaction.dead_rows.queues:
            for n, no, is_blocked in accepted:
                if not is_blocked:
                    m = n.message
                    if m.queue_no in rotating:
                        m = msgspec.structs.replace(m, fair_position=no)  # as it is stored
                    self._transaction.note_ready(m, no)
        for n, no, is_blocked in accepted:
            m, content = n.message, n.content
            if limited_queues:
                m = limited_queues.get(no, m)
                is_blocked = is_blocked or m.is_blocked
            row = (
                m.id, m.queue_no, m.due_at, m.sent_at, no, m.state, no, m.priority, m.expires_at,
                m.max_attempts, int(is_blocked), m.group, m.kind, m.entity_id, m.tag1, m.tag2,
                m.dedup_key, m.size, m.body_day,
            )  # fmt: skip
            if limited_queues and no in limited_queues:
                placed.append((*row, *_more(m), m.fair_position, m.gate))
            elif m.queue_no in rotating:
                placed.append((*row, *_more(m), no, m.gate))
            elif m.timeout_ms or m.retries_timeouts or m.dedup_until or m.route:
                jobs.append(row + _more(m))
            else:
                rows.append(row)
            attributes = _encode(content.attributes).decode() if content.attributes else None
            body = (no, content.body, attributes, content.trace)
            day_bodies = bodies.get(m.body_day)
            if day_bodies is None:
                day_bodies = bodies[m.body_day] = []
            day_bodies.append(body)
            sent[m.queue_no, m.state] += 1
        for (queue_no, state), number in sent.items():
            count = self._transaction.count(queue_no)
            count.sent_total += number
            if state is State.READY:
                count.ready += number
                self._transaction.wake(queue_no, number)
            else:
                count.waiting += number
                self._transaction.wake(queue_no, 0)
        if rows:
            self._db.insert("messages.add", rows)
        if jobs:
            self._db.insert("messages.add_jobs", jobs)
        if placed:
            self._db.insert("messages.add_placed", placed)
        for day, day_bodies in bodies.items():
            self._transaction.partitions.ensure(day)
            self._db.insert("messages.add_bodies", day_bodies, day=day)


def _more(m: Message) -> Row:
    return m.timeout_ms, int(m.retries_timeouts), m.dedup_until, m.route
