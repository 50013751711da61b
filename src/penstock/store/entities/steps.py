"""Durable steps, signals, and the messages that wait for them.

A step is recorded while its message is locked.  A wait and its signal lock the name of the signal
before anything else, so each sees what the other has done.
"""

from __future__ import annotations

from penstock.domain.limits import DAY
from penstock.domain.message import lifecycle
from penstock.domain.message import step as steps
from penstock.domain.message.lease import Lease, held_by
from penstock.domain.message.lifecycle import Message
from penstock.domain.message.selection import count_fitting
from penstock.domain.message.step import RecordedStep, Signal, StepTimes, Wait
from penstock.store.entities.entity import MessageEntity, SqlEntity
from penstock.store.verbs.claims import Claims
from penstock.store.verbs.message_changes import MessageChanges
from penstock.store.verbs.transaction_state import TransactionState, json_list, message_of


class SqlSteps(SqlEntity):
    def record(
        self, lease: Lease, name: str, outcome: str, times: StepTimes, *, now: int
    ) -> tuple[RecordedStep, bool]:
        message = self.hold(lease)
        added = self.add(message.message_no, name, outcome, times, now=now)
        if added is not None:
            steps.check_count(added.step_no)
            return added, True
        found = self.find(message.message_no, name)
        assert found is not None
        return found, False

    def hold(self, lease: Lease) -> Message:
        rows = self._db.rows("messages.by_no", {"message_nos": json_list([lease.message_no])})
        return held_by(lease, message_of(rows[0]) if rows else None)

    def add(
        self, message_no: int, name: str, outcome: str, times: StepTimes, *, now: int
    ) -> RecordedStep | None:
        """None if the message has a step of this name."""
        params = {
            "message_no": message_no,
            "name": name,
            "outcome": outcome,
            "at": now,
            "day": now // DAY,
            "kind": times.kind.value,
            "lease_no": times.lease_no,
            "took_ms": times.took_ms,
        }
        rows = self._db.rows("steps.add", params)
        return RecordedStep(rows[0][0], name, outcome, now) if rows else None

    def find(self, message_no: int, name: str) -> RecordedStep | None:
        rows = self._db.rows("steps.find", {"message_no": message_no, "name": name})
        return RecordedStep(*rows[0]) if rows else None

    def page(
        self, message_no: int, *, after_no: int, limit: int, max_bytes: int
    ) -> tuple[list[RecordedStep], bool]:
        params = {"message_no": message_no, "after_no": after_no, "limit": limit + 1}
        sizes = [size for (size,) in self._db.rows("steps.sizes", params)]
        params["limit"] = count_fitting(sizes[:limit], max_bytes)
        found = [RecordedStep(*row) for row in self._db.rows("steps.page", params)] if sizes else []
        return found, len(found) == len(sizes)


class SqlSignals(MessageEntity):
    def __init__(
        self, transaction: TransactionState, changes: MessageChanges, claims: Claims
    ) -> None:
        super().__init__(transaction, changes, claims)
        self._steps = SqlSteps(transaction)

    def find(self, name: str, *, now: int) -> Signal | None:
        rows = self._db.rows("signals.find", {"name": name, "now": now})
        return Signal(*rows[0]) if rows else None

    def send(self, signal: Signal) -> tuple[Signal, bool, int]:
        self._transaction.lock_signals([signal.name])
        before = self.find(signal.name, now=signal.at)
        if before is not None:
            return before, False, 0
        if signal.until_at > signal.at:
            params = {
                "name": signal.name,
                "body": signal.body,
                "at": signal.at,
                "until_at": signal.until_at,
            }
            self._db.run("signals.keep", params)
        return signal, True, self._end_waits(signal)

    def wait(
        self, lease: Lease, name: str, step: str, *, until_at: int | None, now: int
    ) -> RecordedStep | Wait:
        self._transaction.lock_signals([name])
        message = self._steps.hold(lease)
        recorded = self._steps.find(message.message_no, step)
        if recorded is not None:
            return recorded
        params = {
            "name": name,
            "message_no": message.message_no,
            "step": step,
            "at": now,
            "until_at": until_at,
        }
        wait = Wait(*self._db.rows("signals.register", params)[0])
        outcome = steps.outcome_of(wait, self.find(name, now=now), now=now)
        if outcome is None:
            return wait
        self._db.run("signals.end_wait", {"name": name, "message_no": message.message_no})
        times = steps.times_of(wait, outcome, now=now)
        return self._steps.record(lease, step, outcome, times, now=now)[0]

    def waits_of(self, message_no: int) -> list[Wait]:
        rows = self._db.rows("signals.waits_of", {"message_no": message_no})
        return [Wait(*row) for row in rows]

    def _end_waits(self, signal: Signal) -> int:
        """Record the steps of all that wait, and make their messages due; returns how many."""
        params = {"name": signal.name}
        waits = [Wait(*row) for row in self._db.rows("signals.waits_for", params)]
        if not waits:
            return 0
        now = signal.at
        found = self._lock_order.lock_by_no([wait.message_no for wait in waits], now=now)
        messages = {message.message_no: message for message in found}
        ended = 0
        for wait in waits:
            message = messages.get(wait.message_no)
            if message is None:  # it has ended
                continue
            outcome = steps.arrived(signal.body)
            times = steps.times_of(wait, outcome, now=now)
            self._steps.add(message.message_no, wait.step, outcome, times, now=now)
            ended += 1
            if steps.is_woken(wait, message):
                due = lifecycle.reschedule(message, due_at=now, now=now)
                self._changes.note(message, due, now=now)
        self._changes.save()
        self._db.run("signals.end_waits", params)
        return ended
