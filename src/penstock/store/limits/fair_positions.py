"""Positions in fair queues: given by sends, passed by claims.  See domain/queue/fair_share.py."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.domain.message.lifecycle import Message
from penstock.domain.queue import fair_share as fairness
from penstock.domain.queue.fair_share import NO_GROUP, STEP
from penstock.domain.queue.queue import Queue
from penstock.store.verbs.transaction_state import Books, json_list

Joining = tuple[int, int, str | None]  # queue, priority and group of somebody who joins the line


class Turns:
    def __init__(self, books: Books) -> None:
        self._books = books
        self._db = books.db

    def take(self, joining: Sequence[Joining]) -> list[int]:
        """The turns of messages that come into fair queues, in the order of their coming."""
        places = [(no, priority, group or NO_GROUP) for no, priority, group in joining]
        queue_nos = {no for no, _, _ in places}
        self._books.need_lines(queue_nos)
        asked = self._db.ask("turns.lines", {"queue_nos": json_list(sorted(queue_nos))})
        known = self._db.ask("turns.shares", {"shares": json_list(sorted(set(places)))})
        passed = {(no, priority): turn for no, priority, turn in asked.rows()}
        left_off = {(no, priority, group): turn for no, priority, group, turn in known.rows()}
        turns = []
        for place in places:
            no, priority, group = place
            turn = fairness.next_position(passed.get((no, priority), 0), left_off.get(place, 0))
            weight = fairness.weight_of(group, self._books.queue(no).settings.weights)
            left_off[place] = fairness.finish(turn, weight)
            turns.append(turn)
        self._db.insert("turns.keep_shares", [(*key, left_off[key]) for key in sorted(set(places))])
        return turns

    def pass_by(self, queue_no: int, claimed: Sequence[Message], *, is_short: bool) -> None:
        """A claim in a fair queue.  `is_short`: nothing was left that it could take."""
        passed: dict[int, int] = {}
        for m in claimed:
            passed[m.priority] = max(m.turn, passed.get(m.priority, 0))
        if passed:
            rows = [(queue_no, priority, turn) for priority, turn in sorted(passed.items())]
            self._db.insert("turns.save_windows", rows)
        if is_short and self._db.rows("turns.is_drained", {"queue_no": queue_no}):
            # Who has left off far away, and was cancelled, need not wait until others get there.
            self._db.post("turns.pass_all", {"queue_no": queue_no})
            self._db.post("turns.forget_shares", {"queue_no": queue_no})

    def forget(self, *, limit: int) -> int:
        return self._db.run("turns.forget", {"limit": limit})

    def line_up(self, queue: Queue) -> None:
        """A queue becomes fair: all that stand in line share it from the front on."""
        weights = msgspec.json.encode(queue.settings.weights).decode()
        params = {"queue_no": queue.queue_no, "step": STEP, "weights": weights}
        self._db.post("turns.line_up", params | {"is_ordered": int(queue.is_ordered)})
        self._db.post("turns.note_shares", params)

    def leave_off(self, queue_no: int) -> None:
        """A queue is not fair any more: only places count."""
        self._db.post("turns.leave_off", {"queue_no": queue_no})
        self.forget_queue(queue_no)

    def forget_queue(self, queue_no: int) -> None:
        self._db.post("turns.forget_shares", {"queue_no": queue_no})
        self._db.post("turns.forget_lines", {"queue_no": queue_no})
