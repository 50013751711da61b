"""Positions in fair queues, assigned by sends and passed by claims (domain/queue/fair_share.py)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.domain.message.lifecycle import Message
from penstock.domain.queue import fair_share
from penstock.domain.queue.fair_share import NO_GROUP, STEP
from penstock.domain.queue.queue import Queue
from penstock.store.verbs.transaction_state import TransactionState, json_list

Joining = tuple[int, int, str | None]  # queue, priority and group of an arriving message


class FairPositions:
    def __init__(self, transaction: TransactionState) -> None:
        self._transaction = transaction
        self._db = transaction.db

    def assign(self, joining: Sequence[Joining]) -> list[int]:
        """The positions of messages that arrive in fair queues, in order of arrival."""
        places = [(no, priority, group or NO_GROUP) for no, priority, group in joining]
        queue_nos = {no for no, _, _ in places}
        self._transaction.require_queue_locks(queue_nos)
        asked = self._db.ask("fair_positions.passed", {"queue_nos": json_list(sorted(queue_nos))})
        known = self._db.ask("fair_positions.shares", {"shares": json_list(sorted(set(places)))})
        passed = {(no, priority): position for no, priority, position in asked.rows()}
        finished = {
            (no, priority, group): position for no, priority, group, position in known.rows()
        }
        positions = []
        for place in places:
            no, priority, group = place
            position = fair_share.next_position(
                passed.get((no, priority), 0), finished.get(place, 0)
            )
            weight = fair_share.weight_of(group, self._transaction.queue(no).settings.weights)
            finished[place] = fair_share.finish(position, weight)
            positions.append(position)
        self._db.insert(
            "fair_positions.keep_shares", [(*key, finished[key]) for key in sorted(set(places))]
        )
        return positions

    def record_claim(self, queue_no: int, claimed: Sequence[Message], *, is_short: bool) -> None:
        """Call it after a claim in a fair queue; `is_short`: the claim left nothing claimable."""
        passed: dict[int, int] = {}
        for m in claimed:
            passed[m.priority] = max(m.fair_position, passed.get(m.priority, 0))
        if passed:
            rows = [(queue_no, priority, position) for priority, position in sorted(passed.items())]
            self._db.insert("fair_positions.keep_passed", rows)
        if is_short and self._db.rows("fair_positions.is_drained", {"queue_no": queue_no}):
            # The queue is empty: a group that was far ahead starts level with the others again.
            self._db.post("fair_positions.pass_all", {"queue_no": queue_no})
            self._db.post("fair_positions.forget_shares", {"queue_no": queue_no})

    def forget(self, *, limit: int) -> int:
        return self._db.run("fair_positions.forget", {"limit": limit})

    def assign_all(self, queue: Queue) -> None:
        """A queue becomes fair: assign positions to all of its messages."""
        weights = msgspec.json.encode(queue.settings.weights).decode()
        params = {"queue_no": queue.queue_no, "step": STEP, "weights": weights}
        self._db.post("fair_positions.assign_all", params | {"is_ordered": int(queue.is_ordered)})
        self._db.post("fair_positions.note_shares", params)

    def clear(self, queue_no: int) -> None:
        """A queue stops being fair: messages are claimed in order of arrival."""
        self._db.post("fair_positions.clear", {"queue_no": queue_no})
        self.forget_queue(queue_no)

    def forget_queue(self, queue_no: int) -> None:
        self._db.post("fair_positions.forget_shares", {"queue_no": queue_no})
        self._db.post("fair_positions.forget_passed", {"queue_no": queue_no})
