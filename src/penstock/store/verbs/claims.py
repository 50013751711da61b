"""Claims: first return due messages to the queue, then lease the first of the queue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from penstock.domain.errors import ClaimNotRepeatable, PenstockError, QueueNotFound
from penstock.domain.message import lifecycle
from penstock.domain.message.history import Attempt, AttemptOutcome, attempt
from penstock.domain.message.lifecycle import Content, Message, State
from penstock.ports.store import Claim, Claimed
from penstock.store.database import QueryResult, Row
from penstock.store.limits.allowances import Allowances
from penstock.store.limits.group_limits import GroupLimits
from penstock.store.verbs.claim_batch import ClaimBatch, group_alike, total_size
from penstock.store.verbs.dedup_claims import keys_freed_by_claim, release_keys
from penstock.store.verbs.flow_endings import FlowEndings
from penstock.store.verbs.lock_order import LockOrder
from penstock.store.verbs.message_changes import MessageChanges
from penstock.store.verbs.queue_heads import ClaimsByKind, ConsecutiveClaims, ask_head
from penstock.store.verbs.repeatable_claims import RepeatableClaims
from penstock.store.verbs.transaction_state import TransactionState, json_list, message_of

_CHUNK = 500  # fallen-due messages per step
_attributes = msgspec.json.Decoder(dict[str, str])


class Sweep(msgspec.Struct):
    """Queries sent before a claim: for messages that have expired or fallen due."""

    expired: QueryResult
    due: QueryResult


class Claims:
    def __init__(
        self, transaction: TransactionState, changes: MessageChanges, flow_endings: FlowEndings
    ) -> None:
        self._transaction = transaction
        self._changes = changes
        self._flow_endings = flow_endings
        self._consecutive = ConsecutiveClaims(transaction)
        self._by_kind = ClaimsByKind(transaction)
        self._repeatable = RepeatableClaims(transaction, changes)
        self._lock_order = LockOrder(transaction)
        self._allowances = Allowances(transaction, GroupLimits(transaction))
        self._db = transaction.db

    def lock_keys(self, claims: Iterable[Claim]) -> set[tuple[int, int]]:
        """Returns queue and number of each message that a repeated claim will return again."""
        return self._repeatable.lock(claims)

    def claim(self, wanted: Sequence[Claim]) -> list[Claimed | PenstockError]:
        """Bring back what has fallen due in all their queues, then serve them in the given order.

        Queries are sent together where possible; consecutive claims and those with a key come last.
        """
        nows: dict[int, int] = {}
        for claim in wanted:
            nows[claim.queue_no] = max(claim.now, nows.get(claim.queue_no, 0))
        sweeps = {no: self._ask_sweep(no, now=now) for no, now in nows.items()}
        self._transaction.load_queues(set(nows))
        if self._transaction.limited_queues:
            self._allowances.begin()
        answers: list[Claimed | PenstockError] = [Claimed([])] * len(wanted)
        batches: list[ClaimBatch] = []
        for batch in group_alike(wanted):
            try:
                if self._transaction.queue(batch.queue_no).is_claimable:
                    batches.append(batch)
            except QueueNotFound as error:
                for i in batch.places:
                    answers[i] = error
        self._lease(batches, sweeps, nows)
        self._answer_claims(batches, answers)
        return answers

    def return_due(self, queue_no: int, *, now: int, limit: int) -> int:
        """Return messages whose delay is over or whose lease has expired to the queue."""
        self._lock_order.begin({queue_no}, now=now)
        rows = self._ask_due(queue_no, now=now, limit=limit).rows()
        noted = self._note_due(queue_no, [message_of(row) for row in rows], now=now)
        self._changes.save()
        return noted

    def expire(self, queue_no: int, *, now: int, limit: int) -> int:
        """Cancel messages that are past their `expires_at`."""
        self._lock_order.begin({queue_no}, now=now)
        params = {"queue_no": queue_no, "now": now, "limit": limit}
        rows = self._db.rows("messages.expired", params)
        noted = self._note_expired(list(map(message_of, rows)), now=now)
        self._changes.save()
        return noted

    def contents(self, messages: Sequence[Message]) -> dict[int, Content]:
        by_day: dict[int, list[int]] = {}
        for m in messages:
            by_day.setdefault(m.body_day, []).append(m.message_no)
        asked = [
            self._db.ask("messages.bodies", {"message_nos": json_list(nos)}, day=day)
            for day, nos in by_day.items()
        ]
        return {row[0]: content_of(row[1:]) for answer in asked for row in answer.rows()}

    def _ask_sweep(self, queue_no: int, *, now: int) -> Sweep:
        params = {"queue_no": queue_no, "now": now, "limit": _CHUNK}
        expired = self._db.ask("messages.expired", params)
        return Sweep(expired, self._ask_due(queue_no, now=now, limit=_CHUNK))

    def _ask_due(self, queue_no: int, *, now: int, limit: int) -> QueryResult:
        due_from = self._transaction.dead_rows.due_from(queue_no)
        params = {"queue_no": queue_no, "now": now, "limit": limit, "due_from": due_from}
        return self._db.ask("messages.fallen_due", params)

    def _sweep(self, queue_no: int, sweep: Sweep, *, now: int) -> int:
        """Apply the results of the queries; returns how many messages had fallen due."""
        expired = [message_of(row) for row in sweep.expired.rows()]
        due = [message_of(row) for row in sweep.due.rows()]
        if not expired and not due:
            return 0
        gone = {m.message_no for m in expired}
        self._note_expired(expired, now=now)
        left = [m for m in due if m.message_no not in gone]
        noted = self._note_due(queue_no, left, now=now)
        self._changes.save()
        return len(due) - len(left) + noted

    def _note_expired(self, messages: list[Message], *, now: int) -> int:
        messages = self._flow_endings.skip_contended(messages)
        for before in messages:
            self._changes.note(before, lifecycle.expire(before, now=now), now=now)
        return len(messages)

    def _note_due(self, queue_no: int, messages: list[Message], *, now: int) -> int:
        messages = self._lock_order.skip_contended(queue_no, messages)
        messages = self._flow_endings.skip_contended(messages)
        for before in messages:
            queue = self._transaction.queue(queue_no)
            ended: Attempt | None = None
            if before.state is State.LEASED:
                after = lifecycle.expire_lease(before, queue, now=now)
                ended = attempt(before, AttemptOutcome.EXPIRED, now=now)
            else:
                after = lifecycle.fall_due(before, queue, now=now)
            if lifecycle.is_expired(after, now=now):
                after = lifecycle.expire(after, now=now)
            self._changes.note(before, after, now=now, ended_lease=ended)
        return len(messages)

    def _lease(
        self, batches: list[ClaimBatch], sweeps: dict[int, Sweep], nows: dict[int, int]
    ) -> None:
        queue_nos = dict.fromkeys(batch.queue_no for batch in batches)
        found = {no: self._sweep(no, sweeps[no], now=nows[no]) for no in queue_nos}
        plain = [batch for batch in batches if not batch.is_alone]
        limited_queues = self._transaction.limited_queues
        limited = (
            [batch for batch in plain if batch.queue_no in limited_queues] if limited_queues else []
        )
        if limited:
            plain = [batch for batch in plain if batch.queue_no not in limited_queues]
        asked = [
            self._ask_pick(batch, limit=batch.wanted, now=nows[batch.queue_no]) for batch in plain
        ]
        for batch, answer in zip(plain, asked, strict=True):
            self._take(batch, answer, found, now=nows[batch.queue_no])
        for batch in limited:
            self._pick(batch, found, now=nows[batch.queue_no])
        for batch in batches:
            if batch.is_alone:
                self._lease_alone(batch, found, now=nows[batch.queue_no])

    def _pick(self, batch: ClaimBatch, found: dict[int, int], *, now: int) -> None:
        self._limit(batch, now=now)
        if batch.sought:
            answer = self._ask_pick(batch, limit=batch.sought, now=now)
            self._take(batch, answer, found, now=now)

    def _limit(self, batch: ClaimBatch, *, now: int) -> None:
        if self._transaction.limited_queues and batch.queue_no in self._transaction.limited_queues:
            batch.allowed = self._allowances.max_claimable(batch.queue_no, batch.wanted, now=now)

    def _take(
        self, batch: ClaimBatch, answer: QueryResult, found: dict[int, int], *, now: int
    ) -> None:
        self._deal(batch, answer.rows(), found, now=now)
        while batch.is_full and batch.sought:  # serve the remaining claims
            answer = self._ask_pick(batch, limit=batch.sought, now=now)
            self._deal(batch, answer.rows(), found, now=now)
        self._count(batch, now=now)

    def _deal(self, batch: ClaimBatch, rows: list[Row], found: dict[int, int], *, now: int) -> None:
        no = batch.queue_no

        def is_short() -> bool:
            return len(rows) < batch.sought and not batch.is_filled_by(rows)

        def limits() -> dict[str, int]:
            return {
                "limit": batch.sought - len(rows),
                "max_bytes": batch.max_bytes - total_size(rows),
            }

        if batch.kinds and self._db.is_shared and is_short():
            rows += self._by_kind.rest(batch.kinds, self._lease_of(batch, now=now, **limits()))
        self._note_claim(batch, now=now)
        # A chunk may have fewer claimable messages than wanted (some are dead or blocked).  With a
        # lease of length 0 a message just picked is due again, and must not be picked twice.
        while is_short() and found[no] == _CHUNK and self._lease_ms(batch):
            found[no] = self.return_due(no, now=now, limit=_CHUNK)
            rows += self._ask_pick(batch, now=now, **limits()).rows()
        batch.deal(rows)
        if batch.is_full and self._db.is_shared:
            self._transaction.wake(
                no
            )  # what did not fit was locked meanwhile: other claims may have found nothing

    def _lease_alone(self, batch: ClaimBatch, found: dict[int, int], *, now: int) -> None:
        claim, lease_ms = batch.claims[0], self._lease_ms(batch)
        try:
            again = self._repeatable.again(claim, now=now, lease_ms=lease_ms)
        except ClaimNotRepeatable as error:
            batch.error = error
            return
        if again is not None:
            batch.parts = [again] if again else []
        elif self._is_run(batch):
            self._take_run(batch, found, now=now)
        else:
            self._pick(batch, found, now=now)
        if again is None:
            self._repeatable.remember(claim, batch.messages, now=now)

    def _is_run(self, batch: ClaimBatch) -> bool:
        """Only queues ordered by group have runs, and only claims of several messages need one."""
        in_a_row = batch.claims[0].in_a_row and batch.wanted > 1
        return in_a_row and self._transaction.queue(batch.queue_no).is_ordered

    def _take_run(self, batch: ClaimBatch, found: dict[int, int], *, now: int) -> None:
        """Like `_take`: continue while more due messages may become claimable."""
        no, lease_ms = batch.queue_no, self._lease_ms(batch)
        self._limit(batch, now=now)
        messages: list[Message] = []
        max_bytes, is_full = batch.max_bytes, False
        self._note_claim(batch, now=now)
        while len(messages) < batch.sought:
            limit = batch.sought - len(messages)
            lease = self._lease_of(batch, limit=limit, max_bytes=max_bytes, now=now)
            more = self._consecutive.claim(lease)
            messages += more
            max_bytes -= sum(m.size for m in more)
            is_full = max_bytes * 2 < batch.max_bytes
            if len(more) == limit or is_full or found[no] < _CHUNK or not lease_ms:
                break
            found[no] = self.return_due(no, now=now, limit=_CHUNK)
        batch.is_short = len(messages) < batch.sought and not is_full
        batch.parts = [messages] if messages else []
        self._count(batch, now=now)

    def _count(self, batch: ClaimBatch, *, now: int) -> None:
        messages = batch.messages
        freed = keys_freed_by_claim(messages)
        if freed:
            release_keys(self._transaction, freed)
        count = self._transaction.count(batch.queue_no)
        count.ready -= len(messages)
        count.leased += len(messages)
        count.claimed_total += len(messages)
        self._transaction.note_claimed(batch.queue_no, messages)
        if batch.allowed is not None:
            is_short = batch.is_short and batch.kinds is None
            self._allowances.record_claim(batch.queue_no, messages, is_short=is_short, now=now)

    def _note_claim(self, batch: ClaimBatch, *, now: int) -> None:
        due_at = now + self._lease_ms(batch)
        self._transaction.note_claim(batch.queue_no, batch.kinds, now=now, due_at=due_at)

    def _lease_ms(self, batch: ClaimBatch) -> int:
        if batch.claims[0].lease_ms is not None:
            return batch.claims[0].lease_ms
        return self._transaction.queue(batch.queue_no).settings.lease_ms

    def _ask_pick(
        self, batch: ClaimBatch, *, limit: int, now: int, max_bytes: int | None = None
    ) -> QueryResult:
        lease = self._lease_of(batch, limit=limit, max_bytes=max_bytes, now=now)
        if batch.kinds is not None:
            return self._by_kind.ask(batch.kinds, lease)
        return ask_head(self._transaction, lease)

    def _lease_of(
        self, batch: ClaimBatch, *, limit: int, now: int, max_bytes: int | None = None
    ) -> dict[str, Any]:
        return {
            "queue_no": batch.queue_no,
            "now": now,
            "due_at": now + self._lease_ms(batch),
            "claimed_by": batch.claims[0].claimed_by,
            "limit": limit,
            "max_bytes": batch.max_bytes if max_bytes is None else max_bytes,
        }

    def _answer_claims(
        self, batches: list[ClaimBatch], answers: list[Claimed | PenstockError]
    ) -> None:
        asked = {
            batch.queue_no: self._ask_next_due(batch.queue_no)
            for batch in batches
            if batch.has_unserved
        }
        contents = self.contents([m for batch in batches for m in batch.messages])
        next_due = {no: answer.rows() for no, answer in asked.items()}
        for batch in batches:
            if batch.error is not None:
                answers[batch.places[0]] = batch.error
                continue
            for i, part in zip(batch.places, batch.parts, strict=False):
                answers[i] = Claimed([(m, contents[m.message_no]) for m in part])
            served = len(batch.parts)
            for i, claim in zip(batch.places[served:], batch.claims[served:], strict=True):
                if (due_at := self._next_due(next_due, claim)) is not None:
                    answers[i] = Claimed([], due_at)

    def _ask_next_due(self, queue_no: int) -> QueryResult:
        due_from = self._transaction.dead_rows.next_from(queue_no)
        return self._db.ask("messages.next_due", {"queue_no": queue_no, "due_from": due_from})

    def _next_due(self, found: dict[int, list[Row]], claim: Claim) -> int | None:
        instants = [due_at for (due_at,) in found[claim.queue_no]]
        if self._transaction.limited_queues and claim.queue_no in self._transaction.limited_queues:
            allowed_at = self._allowances.next_at(claim.queue_no, now=claim.now)
            instants += [] if allowed_at is None else [allowed_at]
        return min(instants, default=None)


def content_of(row: Row) -> Content:
    body, attributes, trace = row
    return Content(body, _attributes.decode(attributes) if attributes else None, trace)
