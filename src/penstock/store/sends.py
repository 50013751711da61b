"""Sending: all messages of a batch in a few statements."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.domain.draft import NewMessage
from penstock.domain.errors import PenstockError, QueueFull, QueueNotFound
from penstock.domain.message import State
from penstock.ports.store import Sent
from penstock.store.books import Books, json_list
from penstock.store.database import Row

_encode = msgspec.json.Encoder().encode


class Sends:
    def __init__(self, books: Books) -> None:
        self._books = books
        self._db = books.db

    def send(self, new: Sequence[NewMessage]) -> list[Sent | PenstockError]:
        books = self._books
        books.load_queues({n.message.queue_no for n in new})
        answers = self._refused(new)
        self._find_duplicates(new, answers)
        blocked = self._blocked(new, answers)
        accepted = [i for i, answer in enumerate(answers) if answer is None]
        if accepted:
            first_no = books.take_numbers(len(accepted))
            self._store([new[i] for i in accepted], first_no, [blocked[i] for i in accepted])
            for i in accepted:
                answers[i] = Sent(new[i].message.id)
        return answers  # type: ignore[return-value]

    def _refused(self, new: Sequence[NewMessage]) -> list[Sent | PenstockError | None]:
        books = self._books
        answers: list[Sent | PenstockError | None] = [None] * len(new)
        room: dict[int, int] = {}
        for i, n in enumerate(new):
            queue_no = n.message.queue_no
            try:
                limit = books.queue(queue_no).settings.max_messages
            except QueueNotFound as error:
                answers[i] = error
                continue
            if limit is None:
                continue
            if queue_no not in room:
                room[queue_no] = limit - self._live(queue_no)
            room[queue_no] -= 1
            if room[queue_no] < 0:
                name = books.queue(queue_no).name
                answers[i] = QueueFull(f"queue {name!r} holds its limit of {limit} messages")
        return answers

    def _live(self, queue_no: int) -> int:
        rows = self._db.rows("queues.counts", {"queue_nos": json_list([queue_no])})
        stored = sum(rows[0][1:4]) if rows else 0
        return int(stored) + self._books.count(queue_no).live

    def _find_duplicates(
        self, new: Sequence[NewMessage], answers: list[Sent | PenstockError | None]
    ) -> None:
        """Answer those whose key is taken; take the keys of the others."""
        wanted: dict[tuple[int, str], list[int]] = {}
        for i, n in enumerate(new):
            if n.message.dedup_key is not None and answers[i] is None:
                wanted.setdefault((n.message.queue_no, n.message.dedup_key), []).append(i)
        if not wanted:
            return
        keys = json_list(sorted(wanted))
        now = max(new[i].message.sent_at for places in wanted.values() for i in places)
        self._db.run("messages.free_keys", {"keys": keys, "now": now})
        rows: list[Row] = []
        for (queue_no, key), places in sorted(wanted.items()):
            first = new[places[0]].message
            window = self._books.queue(queue_no).settings.dedup_window_ms
            rows.append((queue_no, key, first.id, first.sent_at + window))
        taken = {row[0] for row in self._db.insert("messages.take_keys", rows)}
        known = {(q, k): i for q, k, i in self._db.rows("messages.known_keys", {"keys": keys})}
        for key_pair, places in wanted.items():
            if new[places[0]].message.id in taken:
                places = places[1:]
            for i in places:
                answers[i] = Sent(known[key_pair], is_duplicate=True)

    def _blocked(
        self, new: Sequence[NewMessage], answers: list[Sent | PenstockError | None]
    ) -> list[bool]:
        """In a queue ordered by group, whoever has somebody of its group before it is blocked."""
        blocked = [False] * len(new)
        groups = {
            (n.message.queue_no, n.message.group): i
            for i, n in enumerate(new)
            if n.message.group is not None
            and answers[i] is None
            and self._books.queue(n.message.queue_no).is_ordered
        }
        if not groups:
            return blocked
        params = {"groups": json_list(sorted(groups))}
        self._db.rows("messages.lock_groups", params)
        busy = {(q, g) for q, g in self._db.rows("messages.live_groups", params)}
        for i, n in enumerate(new):
            pair = (n.message.queue_no, n.message.group)
            if pair in groups and answers[i] is None:
                blocked[i] = pair in busy
                busy.add(pair)
        return blocked

    def _store(self, new: list[NewMessage], first_no: int, blocked: list[bool]) -> None:
        rows: list[Row] = []
        bodies: dict[int, list[Row]] = {}
        for no, (n, is_blocked) in enumerate(zip(new, blocked, strict=True), start=first_no):
            m, content = n.message, n.content
            rows.append(
                (
                    m.id, m.queue_no, m.due_at, m.sent_at, no, m.state.value, no, m.priority,
                    m.expires_at, m.max_attempts, int(is_blocked), m.group, m.kind, m.entity_id,
                    m.tag1, m.tag2, m.dedup_key, m.size, m.body_day,
                )
            )  # fmt: skip
            attributes = _encode(content.attributes).decode() if content.attributes else None
            body = (no, content.body, attributes, content.trace)
            bodies.setdefault(m.body_day, []).append(body)
            count = self._books.count(m.queue_no)
            count.sent_total += 1
            if m.state is State.READY:
                count.ready += 1
                self._books.wake(m.queue_no)
            else:
                count.waiting += 1
                self._books.wake(m.queue_no, 0)
        self._db.insert("messages.add", rows)
        for day, day_bodies in bodies.items():
            self._books.partitions.ensure(day)
            self._db.insert("messages.add_bodies", day_bodies, day=day)
