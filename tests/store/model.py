"""What a store should hold, played in plain Python with the functions of the domain.

It keeps no index and no counter of states: whatever can be said as a rule over all messages is said
as one (who is blocked, how many wait), so that it cannot drift in the way a store could.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from penstock.domain.errors import LeaseLost, PenstockError, QueueFull
from penstock.domain.message import lease as leases
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.claim_key import KEPT_MS, ClaimResult, repeat
from penstock.domain.message.dedup import frees_key
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.history import FAILURES, OUTCOME_OF, Attempt, AttemptOutcome, attempt
from penstock.domain.message.lease import LeaseAct, Verb
from penstock.domain.message.lifecycle import LIVE, NEXT_ORDER, PURGED, Message, State
from penstock.domain.queue.group_limit import HELD_BACK
from penstock.domain.queue.queue import Counts, DedupScope, Queue
from penstock.ports.store import Claim, Sent
from tests.store.limits_model import LimitsModel

NO_END = 2**62
ENDS = (State.DONE, State.DEAD, State.CANCELLED)


class ActAnswer(NamedTuple):
    """The answer to an act; the due date is None once the message has ended."""

    id: str
    state: State
    due_at: int | None


class ClaimAnswer(NamedTuple):
    """The answer to a claim: messages in their order, or when to try again."""

    ids: list[str]
    next_due_at: int | None


class End(NamedTuple):
    id: str
    outcome: State
    reason: str | None
    finished_at: int
    attempts: int
    failures: int
    last_error: str | None
    crashes: int
    route: str | None


class Model(LimitsModel):
    def __init__(self) -> None:
        super().__init__()
        self.ends: dict[int, list[End]] = {}
        self.attempts: dict[str, list[Attempt]] = {}
        self._totals: dict[int, Counts] = {}
        self._keys: dict[tuple[int, bool, str | None, str], tuple[str, int]] = {}
        self._given: dict[tuple[int, str | None], tuple[ClaimResult, int]] = {}
        self._last_no = 0

    def keep(self, queue: Queue, *, now: int) -> None:
        """A new queue, or one that has changed."""
        before = self.queues.get(queue.queue_no)
        self.queues[queue.queue_no] = queue
        self.apply_settings(before, queue, now=now)
        self._finish_transaction(now)
        self._totals.setdefault(queue.queue_no, Counts())
        self.ends.setdefault(queue.queue_no, [])

    def counts(self, queue_no: int) -> Counts:
        totals = self._totals[queue_no]
        states = (State.WAITING, State.READY, State.LEASED, State.DEAD)
        now = {state.value: len(self.of(queue_no, [state])) for state in states}
        return replace(totals, **now)

    def send(self, new: Sequence[NewMessage]) -> list[Sent | type[PenstockError]]:
        return [self._send(n.message) for n in new]

    def act(self, acts: Sequence[tuple[str, LeaseAct]]) -> list[ActAnswer | type[PenstockError]]:
        """In the order of a store: slow acts first, then completions, late ones last."""
        slow = {message_id for message_id, act in acts if act.verb is not Verb.COMPLETE}
        answers: dict[int, ActAnswer | type[PenstockError]] = {}
        now = max((act.now for _, act in acts), default=0)
        others = [i for i, (message_id, _) in enumerate(acts) if message_id in slow]
        answers |= {i: self._act(*acts[i]) for i in others}
        self._finish_transaction(now)
        quick = [i for i in range(len(acts)) if i not in answers]
        in_time = {i: replace(acts[i][1], is_late_ok=False) for i in quick}
        answers |= {i: self._act(acts[i][0], in_time[i]) for i in quick}
        self._finish_transaction(now)
        late = [i for i in quick if answers[i] is LeaseLost and acts[i][1].is_late_ok]
        answers |= {i: self._act(*acts[i]) for i in late}
        self._finish_transaction(now)
        return [answers[i] for i in range(len(acts))]

    def claim(self, claims: Sequence[Claim]) -> list[ClaimAnswer | type[PenstockError]]:
        """All their queues are swept, then claims are served in order, the special ones last; of
        the others all that are alike together.
        """
        for queue_no in dict.fromkeys(claim.queue_no for claim in claims):
            if self.queues[queue_no].is_claimable:
                self._expire(queue_no, now=claims[0].now)
                self._return_due(queue_no, now=claims[0].now)
                self._finish_transaction(claims[0].now)
        alone = list(map(is_alone, claims))
        alike = [
            (claim.queue_no, claim.kinds, i if alone[i] else None) for i, claim in enumerate(claims)
        ]
        places = sorted(range(len(claims)), key=lambda i: (alone[i], alike.index(alike[i])))
        taken = {i: self._claim_or_repeat(claims[i]) for i in places}
        return [
            ClaimAnswer(ids, None if ids else self._next_due(claims[i]))
            if isinstance(ids := taken[i], list)
            else ids
            for i in range(len(claims))
        ]

    def change(
        self, message_id: str, how: Callable[[Message, Queue], Message], *, now: int
    ) -> None:
        before = self.messages[message_id]
        self._note(before, how(before, self.queues[before.queue_no]), now=now)
        self._finish_transaction(now)

    def redrive(self, queue_no: int, *, to: int | None, limit: int, now: int) -> int:
        buried = sorted(self.of(queue_no, [State.DEAD]), key=lambda m: m.message_no)
        in_line = self.of(queue_no, [State.WAITING, State.READY])
        dead = [*buried, *(m for m in in_line if m.dead_from is not None)][:limit]
        for before in dead:
            target = self.queues[to or before.dead_from or queue_no]
            self._note(before, transfer.redrive(before, target, now=now), now=now)
        self._finish_transaction(now)
        return len(dead)

    def forget_keys(self, queue_no: int) -> None:
        """All but those that their messages release."""
        self._keys = {
            key: known
            for key, known in self._keys.items()
            if key[0] != queue_no or known[1] == NO_END
        }

    def purge(self, queue_no: int, *, now: int) -> int:
        messages = self.of(queue_no, State)
        for m in messages:
            self._note(m, lifecycle.cancel(m, reason=PURGED, is_running_ok=True), now=now)
        self._finish_transaction(now)
        return len(messages)

    def expire(self, queue_no: int, *, now: int) -> int:
        found = self._expire(queue_no, now=now)
        self._finish_transaction(now)
        return found

    def return_due(self, queue_no: int, *, now: int, limit: int | None = None) -> int:
        found = self._return_due(queue_no, now=now, limit=limit)
        self._finish_transaction(now)
        return found

    def _expire(self, queue_no: int, *, now: int) -> int:
        messages = [m for m in self.of(queue_no, State) if lifecycle.is_expired(m, now=now)]
        for m in messages:
            self._note(m, lifecycle.expire(m, now=now), now=now)
        return len(messages)

    def _return_due(self, queue_no: int, *, now: int, limit: int | None = None) -> int:
        due = [m for m in self.of(queue_no, [State.WAITING, State.LEASED]) if m.due_at <= now]
        due = sorted(due, key=lambda m: (m.due_at, m.order_no))[:limit]
        for before in due:
            queue = self.queues[queue_no]
            ended = None
            if before.state is State.LEASED:
                after = lifecycle.expire_lease(before, queue, now=now)
                ended = attempt(before, AttemptOutcome.EXPIRED, now=now)
            else:
                after = lifecycle.fall_due(before, queue, now=now)
            if lifecycle.is_expired(after, now=now):
                after = lifecycle.expire(after, now=now)
            self._note(before, after, now=now, ended=ended)
        return len(due)

    def _send(self, message: Message) -> Sent | type[PenstockError]:
        queue = self.queues[message.queue_no]
        window = queue.settings.dedup_window_ms
        is_scoped = queue.settings.dedup_scope is DedupScope.GROUP
        scope = message.group if is_scoped else None
        key = (message.queue_no, is_scoped, scope, message.dedup_key or "")
        is_held = message.dedup_until is not None
        is_keyed = message.dedup_key is not None and (window > 0 or is_held)
        known_id, until = self._keys.get(key, ("", 0))
        if is_keyed and until > message.sent_at:
            return Sent(known_id, is_duplicate=True)
        limit = queue.settings.max_messages
        if limit is not None and len(self.of(queue.queue_no, LIVE)) >= limit:
            return QueueFull
        if is_keyed:
            self._keys[key] = (message.id, NO_END if is_held else message.sent_at + window)
        number = self._next_no()
        sent = replace(message, message_no=number, order_no=number)
        sent = self.with_gate(sent, sent, now=message.sent_at)
        if message.state is State.READY or queue.is_ordered:
            sent = self.with_position(sent)
        self.messages[message.id] = sent
        self._totals[queue.queue_no].sent_total += 1
        self._finish_transaction(message.sent_at)
        return Sent(message.id)

    def _act(self, message_id: str, act: LeaseAct) -> ActAnswer | type[PenstockError]:
        before = self.messages.get(message_id)
        if before is None:
            return LeaseLost
        asked = act
        act = leases.as_noticed(asked, before)
        try:
            after = leases.apply(act, before, self.queues[before.queue_no])
        except PenstockError as refusal:
            return type(refusal)
        outcome = OUTCOME_OF.get(act.verb)
        ended = None if outcome is None else attempt(before, outcome, now=act.now, error=act.text)
        stands = self._note(before, after, now=act.now, ended=ended)
        if act.verb is not asked.verb:
            return LeaseLost
        is_over = after.state in (State.DONE, State.CANCELLED)
        return ActAnswer(message_id, after.state, None if is_over else stands.due_at)

    def _claim_or_repeat(self, claim: Claim) -> list[str] | type[PenstockError]:
        key = (claim.queue_no, claim.claim_key)
        if claim.claim_key is None or not self.queues[claim.queue_no].is_claimable:
            return self._claim(claim)
        given, until_at = self._given.get(key, (None, 0))
        if given is None or until_at <= claim.now:
            ids = self._claim(claim)
            until_at = claim.now + KEPT_MS
        else:
            by_no = {m.message_no: m for m in self.messages.values()}
            try:
                again = repeat(given, by_no, now=claim.now, lease_ms=self._lease_ms(claim))
            except PenstockError as refusal:
                return type(refusal)
            self.messages |= {m.id: m for m in again}
            ids = [m.id for m in again]
        if ids:
            self._given[key] = (ClaimResult.of([self.messages[i] for i in ids]), until_at)
        return ids

    def _lease_ms(self, claim: Claim) -> int:
        own = claim.lease_ms
        return self.queues[claim.queue_no].settings.lease_ms if own is None else own

    def _claim(self, claim: Claim) -> list[str]:
        queue, now = self.queues[claim.queue_no], claim.now
        if not queue.is_claimable:
            return []
        ready = [
            m
            for m in self.of(claim.queue_no, [State.READY])
            if lifecycle.is_claimable(m, now=now) and (claim.kinds is None or m.kind in claim.kinds)
        ]
        ready = sorted(ready, key=lambda m: (m.priority, m.fair_position, m.order_no))
        if self._is_run(claim):
            ready = [m for head in ready for m in self._run(head, now=now)]
        sought = self.allowed(queue, claim.limit, now=now)
        ready = ready[:sought]
        lease_ms = self._lease_ms(claim)
        for m in ready:
            self.messages[m.id] = lifecycle.claim(
                m,
                now=now,
                lease_ms=lease_ms,
                claimed_by=claim.claimed_by,
                in_a_row=self._is_run(claim),
            )
            self._free_key(m, self.messages[m.id])
        self._totals[claim.queue_no].claimed_total += len(ready)
        is_short = len(ready) < sought and claim.kinds is None
        self.record_claim(queue, ready, is_short=is_short, now=now)
        self._finish_transaction(now)
        return [m.id for m in ready]

    def _is_run(self, claim: Claim) -> bool:
        return claim.in_a_row and claim.limit > 1 and self.queues[claim.queue_no].is_ordered

    def _run(self, head: Message, *, now: int) -> list[Message]:
        if head.group is None:
            return [head]
        group = [m for m in self.of(head.queue_no, LIVE) if m.group == head.group]
        return lifecycle.claimable_in_a_row(group, now=now)

    def _next_due(self, claim: Claim) -> int | None:
        queue = self.queues[claim.queue_no]
        if not queue.is_claimable:
            return None
        due = [m.due_at for m in self.of(queue.queue_no, [State.WAITING, State.LEASED])]
        allowed_at = self.allowed_at(queue, now=claim.now)
        return min([*due, *([] if allowed_at is None else [allowed_at])], default=None)

    def _note(
        self, before: Message, after: Message, *, now: int, ended: Attempt | None = None
    ) -> Message:
        """One change with all its consequences; returns the message as it is stored."""
        if ended is not None:
            self._end_lease(ended)
        if before.state is not State.DEAD and after.state in ENDS:
            self._end(after, now)
        if after.state is State.DEAD:
            target = self._dead_letter_queue(after)
            if target is not None:
                after = transfer.dead_letter(after, target, now=now)
        self._count_arrival(before, after)
        self._free_key(before, after)
        after = self.with_gate(before, after, now=now)
        has_position = after.fair_position or after.state is not State.READY
        if after.state in LIVE and (after.order_no == NEXT_ORDER or not has_position):
            after = self.with_position(after)
        if after.order_no == NEXT_ORDER:
            after = replace(after, order_no=self._next_no())
        if after.state in (State.DONE, State.CANCELLED):
            del self.messages[before.id]
        else:
            self.messages[before.id] = after
        return after

    def _finish_transaction(self, now: int) -> None:
        """At the end of a transaction."""
        self.admit(now=now)
        self._block_groups()

    def _end_lease(self, ended: Attempt) -> None:
        self.attempts.setdefault(ended.id, []).append(ended)
        totals = self._totals[ended.queue_no]
        totals.failed_total += ended.outcome in FAILURES
        totals.expired_total += ended.outcome is AttemptOutcome.EXPIRED

    def _end(self, m: Message, now: int) -> None:
        end = End(
            m.id, m.state, m.reason, now, m.attempts, m.failures, m.last_error, m.crashes, m.route
        )
        self.ends[m.queue_no].append(end)
        totals = self._totals[m.queue_no]
        totals.done_total += m.state is State.DONE
        totals.dead_total += m.state is State.DEAD
        totals.cancelled_total += m.state is State.CANCELLED

    def _free_key(self, before: Message, after: Message) -> None:
        if frees_key(before, after):
            self._keys = {
                key: (message_id, until)
                for key, (message_id, until) in self._keys.items()
                if message_id != before.id or until != NO_END
            }

    def _dead_letter_queue(self, dead: Message) -> Queue | None:
        name = self.queues[dead.queue_no].settings.dead_letter_queue
        return next((queue for queue in self.queues.values() if queue.name == name), None)

    def _count_arrival(self, before: Message, after: Message) -> None:
        has_moved = after.queue_no != before.queue_no
        if after.state in LIVE and (has_moved or before.state is State.DEAD):
            self._totals[after.queue_no].sent_total += 1
        if has_moved and before.state in LIVE and after.dead_from is None:
            self._totals[before.queue_no].cancelled_total += 1

    def _block_groups(self) -> None:
        """The rule itself: a message is blocked by a live one of its group before it."""
        for queue in self.queues.values():
            seen: set[str] = set()
            for m in self.of(queue.queue_no, LIVE):
                is_blocked = (queue.is_ordered and m.group in seen) or m.gate == HELD_BACK
                if m.is_blocked != is_blocked:
                    self.messages[m.id] = replace(m, is_blocked=is_blocked)
                if m.group is not None:
                    seen.add(m.group)

    def _next_no(self) -> int:
        self._last_no += 1
        return self._last_no


def is_alone(claim: Claim) -> bool:
    """Such claims are served after the others of their batch, one by one."""
    return claim.in_a_row or claim.claim_key is not None
