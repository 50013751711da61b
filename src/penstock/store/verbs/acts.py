"""Acts on leases.  Completions, the hot ones, are two statements; others go by the lifecycle."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.errors import LeaseLost, PenstockError
from penstock.domain.limits import DAY
from penstock.domain.message import lease as leases
from penstock.domain.message.history import OUTCOME_OF, attempt
from penstock.domain.message.lease import LeaseAct, Verb
from penstock.domain.message.lifecycle import Message, State
from penstock.ports.store import Acted
from penstock.store.database import Row
from penstock.store.limits.group_limits import Openings
from penstock.store.verbs.dedup_claims import give_back
from penstock.store.verbs.message_changes import Changes
from penstock.store.verbs.transaction_state import Books, json_list, message_of

# An extension is, too, if it comes past the deadline.
_DEADLY = (Verb.FAIL, Verb.BURY, Verb.TIME_OUT, Verb.CRASH, Verb.EXTEND)


class Acts:
    def __init__(self, books: Books, changes: Changes) -> None:
        self._books = books
        self._changes = changes
        self._openings = Openings(books)
        self._db = books.db

    def act(self, acts: Sequence[LeaseAct]) -> list[Acted | PenstockError]:
        answers: list[Acted | PenstockError] = [LeaseLost() for _ in acts]
        # A message with any other act upon it has all its acts decided one after the other, and
        # so has one that is completed with a word to be kept.
        slow = {
            a.lease.message_no for a in acts if a.verb is not Verb.COMPLETE or a.text is not None
        }
        completions = [i for i, a in enumerate(acts) if a.lease.message_no not in slow]
        others = [i for i, a in enumerate(acts) if a.lease.message_no in slow] if slow else []
        if others:
            self._decide(acts, others, answers)
        if completions:
            self._complete(acts, completions, answers)
            # Those whose message was brought back meanwhile: whose is it now?
            late = [i for i in completions if acts[i].is_late_ok and _is_refused(answers[i])]
            if late:
                self._decide(acts, late, answers)
        return answers

    def queues(self, acts: Sequence[LeaseAct]) -> set[int]:
        """Those that have to be looked at: for a completion only if it is ordered by group."""
        ordered = self._books.ordered_of({act.lease.queue_no for act in acts})
        others = {
            a.lease.queue_no for a in acts if a.verb is not Verb.COMPLETE or a.text is not None
        }
        return ordered | others

    def groups(self, acts: Sequence[LeaseAct], given: set[tuple[int, int]]) -> set[tuple[int, str]]:
        """The groups that may be left or, by those who die, entered; and those of messages that
        are given again, by queue and number."""
        ordered = self._books.ordered_of(
            {act.lease.queue_no for act in acts} | {queue_no for queue_no, _ in given}
        )
        deadly = {act.lease.queue_no for act in acts if act.verb in _DEADLY}
        letters = self._books.ordered_letters_of(deadly)
        wanted = ordered | letters.keys()
        nos = {act.lease.message_no for act in acts if act.lease.queue_no in wanted}
        nos |= {message_no for queue_no, message_no in given if queue_no in ordered}
        if not nos:
            return set()
        rows = self._db.rows("messages.groups_of", {"message_nos": json_list(sorted(nos))})
        left = {(queue_no, group) for queue_no, group in rows if queue_no in ordered}
        return left | {(letters[no], group) for no, group in rows if no in letters}

    def lines(self, acts: Sequence[LeaseAct]) -> set[int]:
        """The queues whose limits may let others through, or that the dead come into."""
        queue_nos = {act.lease.queue_no for act in acts}
        deadly = {act.lease.queue_no for act in acts if act.verb in _DEADLY}
        return queue_nos | self._books.letters_of(deadly)

    def lock_messages(self, acts: Sequence[LeaseAct], given: set[tuple[int, int]]) -> None:
        """All at once: otherwise those that are given again come after those acted upon."""
        nos = {act.lease.message_no for act in acts} | {message_no for _, message_no in given}
        self._db.post("messages.by_no", {"message_nos": json_list(sorted(nos))})

    def _complete(
        self,
        acts: Sequence[LeaseAct],
        places: list[int],
        answers: list[Acted | PenstockError],
    ) -> None:
        # The same receipt twice in one batch: the first one has it.
        first: dict[tuple[int, int, int], int] = {}
        for i in places:
            lease = acts[i].lease
            first.setdefault((lease.message_no, lease.lease_no, lease.leased_at), i)
        now = max(acts[i].now for i in places)
        day = self._books.partitions.ensure(now // DAY)
        params = {"held": json_list(sorted(first)), "now": now}
        done = self._db.rows("messages.complete", params, day=day)
        if not done:
            return
        nos = json_list([row[0] for row in done])
        self._db.post("messages.remove_completed", {"message_nos": nos})
        for message_no, lease_no, leased_at, message_id, *_ in done:
            answers[first[message_no, lease_no, leased_at]] = Acted(message_id, State.DONE, now)
        self._after_completion(done, now)
        held = [(row[4], row[5], row[6], row[3]) for row in done if row[6] is not None]
        if held:
            give_back(self._books, held)

    def _after_completion(self, done: list[Row], now: int) -> None:
        groups: set[tuple[int, str]] = set()
        limited: set[tuple[int, str]] = set()
        for _, _, _, _, queue_no, group, _, gate in done:
            count = self._books.count(queue_no)
            count.leased -= 1
            count.done_total += 1
            if group is not None and self._books.is_ordered(queue_no):
                groups.add((queue_no, group))
            if gate:
                limited.add((queue_no, group))
            if self._books.steered and self._books.limits_leases(queue_no):
                self._books.wake(queue_no)
        if groups:
            self._changes.unblock(groups)
        if limited:
            self._openings.open(limited, now=now)

    def _decide(
        self,
        acts: Sequence[LeaseAct],
        places: list[int],
        answers: list[Acted | PenstockError],
    ) -> None:
        held = self._load([acts[i].lease.message_no for i in places])
        self._books.load_queues({m.queue_no for m in held.values()})
        for i in places:
            before = held.get(acts[i].lease.message_no)
            if before is None:
                continue
            act = leases.as_noticed(acts[i], before)
            try:
                after = self._apply(act, before)
            except PenstockError as error:
                answers[i] = error
                continue
            held[before.message_no] = after
            if act is acts[i]:
                answers[i] = Acted(after.id, _told(before, after), after.due_at)
            else:  # it wanted to go on with it, and cannot
                answers[i] = LeaseLost(after.id)
        self._changes.save()

    def _apply(self, act: LeaseAct, before: Message) -> Message:
        after = leases.apply(act, before, self._books.queue(before.queue_no))
        outcome = OUTCOME_OF.get(act.verb)
        ended = None if outcome is None else attempt(before, outcome, now=act.now, error=act.text)
        return self._changes.note(before, after, now=act.now, ended_lease=ended)

    def _load(self, message_nos: list[int]) -> dict[int, Message]:
        params = {"message_nos": json_list(sorted(set(message_nos)))}
        return {m.message_no: m for m in map(message_of, self._db.rows("messages.by_no", params))}


def _is_refused(answer: Acted | PenstockError) -> bool:
    return isinstance(answer, PenstockError)


def _told(before: Message, after: Message) -> State:
    """A message that moved to a dead-letter queue is ready there, but for its holder it is dead."""
    return after.state if after.queue_no == before.queue_no else State.DEAD
