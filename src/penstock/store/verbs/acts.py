"""Acts on leases.  Completions, the hot path, take two statements; others use the lifecycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from penstock.domain.errors import LeaseLost, PenstockError
from penstock.domain.limits import DAY
from penstock.domain.message import lease as leases
from penstock.domain.message.history import OUTCOME_OF, attempt
from penstock.domain.message.lease import LeaseAct, Verb
from penstock.domain.message.lifecycle import Message, State
from penstock.ports.store import Acted
from penstock.store.database import Row
from penstock.store.limits.group_limits import GroupLimits
from penstock.store.verbs.dedup_claims import release_keys
from penstock.store.verbs.flow_endings import FlowEndings
from penstock.store.verbs.message_changes import MessageChanges
from penstock.store.verbs.transaction_state import TransactionState, json_list, message_of

Answers = list[Acted | PenstockError | None]  # None: not applied; the lease is lost

# Acts that may end in DEAD, as an extension past the deadline does.
_DEADLY = (Verb.FAIL, Verb.BURY, Verb.TIME_OUT, Verb.CRASH, Verb.EXTEND)


class LeaseActs:
    def __init__(
        self, transaction: TransactionState, changes: MessageChanges, flow_endings: FlowEndings
    ) -> None:
        self._transaction = transaction
        self._changes = changes
        self._flow_endings = flow_endings
        self._group_limits = GroupLimits(transaction)
        self._db = transaction.db

    def act(self, acts: Sequence[LeaseAct]) -> list[Acted | PenstockError]:
        answers: Answers = [None] * len(acts)
        # If a message has any other act, or a completion with a text, all of its acts are applied
        # one after the other.
        slow = {
            a.lease.message_no for a in acts if a.verb is not Verb.COMPLETE or a.text is not None
        }
        completions = [i for i, a in enumerate(acts) if a.lease.message_no not in slow]
        others = [i for i, a in enumerate(acts) if a.lease.message_no in slow] if slow else []
        flow_endings = self._flow_endings
        flow_endings.is_deferred = True  # so that all flows are locked at once
        if others:
            self._decide(acts, others, answers)
        if any(act.rejects_late for act in acts):
            completions = self._in_time(acts, completions)
        if completions:
            self._complete(acts, completions, answers)
            # The lease expired meanwhile: decide whether the late completion counts.
            late = [i for i in completions if answers[i] is None and acts[i].is_late_ok]
            if late:
                self._decide(acts, late, answers)
        flow_endings.is_deferred = False
        if flow_endings.events:
            flow_endings.settle(now=max(act.now for act in acts))
        return [LeaseLost() if answer is None else answer for answer in answers]

    def queues(self, acts: Sequence[LeaseAct]) -> set[int]:
        """The queues to read for these acts; for completions only those ordered by group."""
        ordered = self._transaction.ordered_of({act.lease.queue_no for act in acts})
        others = {
            a.lease.queue_no for a in acts if a.verb is not Verb.COMPLETE or a.text is not None
        }
        return ordered | others

    def groups(self, acts: Sequence[LeaseAct], given: set[tuple[int, int]]) -> set[tuple[int, str]]:
        """The groups to lock: those that messages may leave, or enter when they die.

        Also those of messages that repeated claims return (`given`: queue and number of each).
        """
        ordered = self._transaction.ordered_of(
            {act.lease.queue_no for act in acts} | {queue_no for queue_no, _ in given}
        )
        deadly = {act.lease.queue_no for act in acts if act.verb in _DEADLY}
        dead_letter_queues = self._transaction.ordered_dead_letter_queues(deadly)
        wanted = ordered | dead_letter_queues.keys()
        nos = {act.lease.message_no for act in acts if act.lease.queue_no in wanted}
        nos |= {message_no for queue_no, message_no in given if queue_no in ordered}
        if not nos:
            return set()
        rows = self._db.rows("messages.groups_of", {"message_nos": json_list(sorted(nos))})
        left = {(queue_no, group) for queue_no, group in rows if queue_no in ordered}
        return left | {
            (dead_letter_queues[no], group) for no, group in rows if no in dead_letter_queues
        }

    def queues_to_lock(self, acts: Sequence[LeaseAct]) -> set[int]:
        """Queues whose limits may admit more messages after these acts, and dead-letter queues."""
        queue_nos = {act.lease.queue_no for act in acts}
        deadly = {act.lease.queue_no for act in acts if act.verb in _DEADLY}
        return queue_nos | self._transaction.dead_letter_queues_of(deadly)

    def lock_messages(self, acts: Sequence[LeaseAct], given: set[tuple[int, int]]) -> None:
        """Lock all in one sorted statement: those with acts, and those that claims return again."""
        nos = {act.lease.message_no for act in acts} | {message_no for _, message_no in given}
        self._db.post("messages.by_no", {"message_nos": json_list(sorted(nos))})

    def _in_time(self, acts: Sequence[LeaseAct], places: list[int]) -> list[int]:
        """Without the acts that come after the end of the lease and must then be rejected."""
        nos = {acts[i].lease.message_no for i in places if acts[i].rejects_late}
        params = {"message_nos": json_list(sorted(nos))}
        due: dict[int, int] = dict(self._db.rows("messages.due_dates", params))
        return [
            i
            for i in places
            if not leases.is_too_late(acts[i], due.get(acts[i].lease.message_no, 0))
        ]

    def _complete(
        self,
        acts: Sequence[LeaseAct],
        places: list[int],
        answers: Answers,
    ) -> None:
        # If a batch has the same receipt twice, the first one counts.
        first: dict[tuple[int, int, int], int] = {}
        for i in places:
            lease = acts[i].lease
            first.setdefault((lease.message_no, lease.lease_no, lease.leased_at), i)
        now = max(acts[i].now for i in places)
        day = self._transaction.partitions.ensure(now // DAY)
        has_results = any(acts[i].result is not None for i in first.values())
        held: Sequence[object] = sorted(first)
        if has_results:
            held = [(*fence, acts[i].result) for fence, i in sorted(first.items())]
        done = self._db.rows(
            "messages.complete",
            {"held": json_list(held), "now": now},
            day=day,
            result=self._db.text("messages.given_result" if has_results else "messages.no_result"),
        )
        if not done:
            return
        nos = json_list([row[0] for row in done])
        self._db.post("messages.remove_completed", {"message_nos": nos})
        for row in done:
            answers[first[row[:3]]] = Acted(row[3], State.DONE, now)
        if has_results:
            with_result = [row[3] for row in done if acts[first[row[:3]]].result is not None]
            self._transaction.ended += with_result
        if self._transaction.watch.is_on:
            self._transaction.ended_here += [row[3] for row in done]
        self._after_completion(done, now)
        for row in done:
            if row[8] is not None:
                act = acts[first[row[:3]]]
                self._flow_endings.note_done(row[0], row[8], act.result)
        freed = [(row[4], row[5], row[6], row[3]) for row in done if row[6] is not None]
        if freed:
            release_keys(self._transaction, freed)

    def _after_completion(self, done: list[Row], now: int) -> None:
        transaction = self._transaction
        for queue_no, count in Counter(row[4] for row in done).items():
            change = transaction.count(queue_no)
            change.leased -= count
            change.done_total += count
            if transaction.limited_queues and transaction.limits_leases(queue_no):
                transaction.wake(queue_no, count)
        grouped = [(row[4], row[5], row[7]) for row in done if row[5] is not None]
        groups = {(no, group) for no, group, _ in grouped if transaction.is_ordered(no)}
        limited = {(no, group) for no, group, gate in grouped if gate}
        if groups:
            self._changes.unblock(groups)
        if limited:
            self._group_limits.admit(limited, now=now)

    def _decide(
        self,
        acts: Sequence[LeaseAct],
        places: list[int],
        answers: Answers,
    ) -> None:
        held = self._load([acts[i].lease.message_no for i in places])
        self._transaction.load_queues({m.queue_no for m in held.values()})
        for i in places:
            before = held.get(acts[i].lease.message_no)
            if before is None:
                continue
            act = leases.as_noticed(acts[i], before)
            try:
                after, has_died = self._apply(self._armed(act, before), before)
            except PenstockError as error:
                answers[i] = error
                continue
            held[before.message_no] = after
            if act is acts[i]:
                # A message that moved to a dead-letter queue is ready there.
                state = State.DEAD if has_died else after.state
                answers[i] = Acted(after.id, state, after.due_at)
            else:  # an extension that came too late
                answers[i] = LeaseLost(after.id)
        self._changes.save()

    def _armed(self, act: LeaseAct, before: Message) -> LeaseAct:
        """Arm the wait of a snooze; if the wait is over, the message is due at once."""
        if act.signal is None:
            return act
        leases.held_by(act.lease, before)
        params = {
            "name": act.signal,
            "message_no": before.message_no,
            "lease_no": before.lease_no,
        }
        return act if self._db.run("signals.arm", params) else replace(act, delay_ms=0)

    def signals(self, acts: Sequence[LeaseAct]) -> set[str]:
        """The signals that these acts wait for."""
        return {act.signal for act in acts if act.signal is not None}

    def _apply(self, act: LeaseAct, before: Message) -> tuple[Message, bool]:
        """The message as it will be stored, and whether it died."""
        after = leases.apply(act, before, self._transaction.queue(before.queue_no))
        outcome = OUTCOME_OF.get(act.verb)
        ended = None if outcome is None else attempt(before, outcome, now=act.now, error=act.text)
        result = act.result if act.verb is Verb.COMPLETE else None
        has_died = after.state is State.DEAD
        stored = self._changes.note(before, after, now=act.now, ended_lease=ended, result=result)
        return stored, has_died

    def _load(self, message_nos: list[int]) -> dict[int, Message]:
        params = {"message_nos": json_list(sorted(set(message_nos)))}
        return {m.message_no: m for m in map(message_of, self._db.rows("messages.by_no", params))}
