"""Claiming: what has fallen due comes back first, then the front of the line is leased."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from penstock.domain.errors import ClaimNotRepeatable, PenstockError, QueueNotFound
from penstock.domain.message import lifecycle
from penstock.domain.message.history import Attempt, AttemptOutcome, attempt
from penstock.domain.message.lifecycle import Content, Message, State
from penstock.ports.store import Claim, Claimed
from penstock.store.database import Answer, Row
from penstock.store.limits.allowances import Allowances
from penstock.store.limits.group_limits import Openings
from penstock.store.verbs.claim_batch import Share, alike, total_size
from penstock.store.verbs.claims_by_kind import Kinds
from penstock.store.verbs.consecutive_claims import Runs
from penstock.store.verbs.dedup_claims import freed_by_claim, give_back
from penstock.store.verbs.fronts import ask_front
from penstock.store.verbs.lock_order import Holds
from penstock.store.verbs.message_changes import Changes
from penstock.store.verbs.repeatable_claims import Repeats
from penstock.store.verbs.transaction_state import Books, json_list, message_of

_CHUNK = 500  # how many fallen-due messages one step brings back
_attributes = msgspec.json.Decoder(dict[str, str])


class Sweep(msgspec.Struct):
    """What was asked for before a claim: what is too old, and what has fallen due."""

    expired: Answer
    due: Answer


class Claims:
    def __init__(self, books: Books, changes: Changes) -> None:
        self._books = books
        self._changes = changes
        self._runs = Runs(books)
        self._kinds = Kinds(books)
        self._repeats = Repeats(books, changes)
        self._holds = Holds(books)
        self._allowances = Allowances(books, Openings(books))
        self._db = books.db

    def lock_keys(self, claims: Iterable[Claim]) -> set[tuple[int, int]]:
        """Returns which messages are given again: their queues and numbers."""
        return self._repeats.lock(claims)

    def claim(self, wanted: Sequence[Claim]) -> list[Claimed | PenstockError]:
        """Tidy up all their queues, then serve them in the order given.

        All that can be asked for together is; claims in a row and those with a key come last.
        """
        nows: dict[int, int] = {}
        for claim in wanted:
            nows[claim.queue_no] = max(claim.now, nows.get(claim.queue_no, 0))
        sweeps = {no: self._ask_sweep(no, now=now) for no, now in nows.items()}
        self._books.load_queues(set(nows))
        self._allowances.begin()
        answers: list[Claimed | PenstockError] = [Claimed([])] * len(wanted)
        shares: list[Share] = []
        for share in alike(wanted):
            try:
                if self._books.queue(share.queue_no).is_claimable:
                    shares.append(share)
            except QueueNotFound as error:
                for i in share.places:
                    answers[i] = error
        self._lease(shares, sweeps, nows)
        self._share_out(shares, answers)
        return answers

    def bring_back(self, queue_no: int, *, now: int, limit: int) -> int:
        """Put what has fallen due back in line: delays that are over, leases that ran out."""
        self._holds.begin({queue_no}, now=now)
        rows = self._ask_due(queue_no, now=now, limit=limit).rows()
        noted = self._note_due(queue_no, [message_of(row) for row in rows], now=now)
        self._changes.save()
        return noted

    def expire(self, queue_no: int, *, now: int, limit: int) -> int:
        """Cancel what is too old to be of use."""
        self._holds.begin({queue_no}, now=now)
        params = {"queue_no": queue_no, "now": now, "limit": limit}
        rows = self._db.rows("messages.expired", params)
        self._note_expired(map(message_of, rows), now=now)
        self._changes.save()
        return len(rows)

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

    def _ask_due(self, queue_no: int, *, now: int, limit: int) -> Answer:
        params = {"queue_no": queue_no, "now": now, "limit": limit}
        return self._db.ask("messages.fallen_due", params)

    def _sweep(self, queue_no: int, sweep: Sweep, *, now: int) -> int:
        """Tidy up as was asked; tells how many had fallen due."""
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

    def _note_expired(self, messages: Iterable[Message], *, now: int) -> None:
        for before in messages:
            self._changes.note(before, lifecycle.expire(before, now=now), now=now)

    def _note_due(self, queue_no: int, messages: list[Message], *, now: int) -> int:
        messages = self._holds.free_to_die(queue_no, messages)
        for before in messages:
            queue = self._books.queue(queue_no)
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

    def _lease(self, shares: list[Share], sweeps: dict[int, Sweep], nows: dict[int, int]) -> None:
        queue_nos = dict.fromkeys(share.queue_no for share in shares)
        found = {no: self._sweep(no, sweeps[no], now=nows[no]) for no in queue_nos}
        plain = [share for share in shares if not share.is_alone]
        steered = self._books.steered
        limited = [share for share in plain if share.queue_no in steered] if steered else []
        if limited:
            plain = [share for share in plain if share.queue_no not in steered]
        asked = [
            self._ask_pick(share, limit=share.wanted, now=nows[share.queue_no]) for share in plain
        ]
        for share, answer in zip(plain, asked, strict=True):
            self._take(share, answer, found, now=nows[share.queue_no])
        for share in limited:
            self._pick(share, found, now=nows[share.queue_no])
        for share in shares:
            if share.is_alone:
                self._lease_alone(share, found, now=nows[share.queue_no])

    def _pick(self, share: Share, found: dict[int, int], *, now: int) -> None:
        self._limit(share, now=now)
        if share.sought:
            answer = self._ask_pick(share, limit=share.sought, now=now)
            self._take(share, answer, found, now=now)

    def _limit(self, share: Share, *, now: int) -> None:
        if self._books.steered and share.queue_no in self._books.steered:
            share.most = self._allowances.most(share.queue_no, share.wanted, now=now)

    def _take(self, share: Share, answer: Answer, found: dict[int, int], *, now: int) -> None:
        self._deal(share, answer.rows(), found, now=now)
        while share.is_full and share.sought:  # the others get what follows
            answer = self._ask_pick(share, limit=share.sought, now=now)
            self._deal(share, answer.rows(), found, now=now)
        self._count(share, now=now)

    def _deal(self, share: Share, rows: list[Row], found: dict[int, int], *, now: int) -> None:
        no = share.queue_no

        def is_short() -> bool:
            return len(rows) < share.sought and not share.is_filled_by(rows)

        def limits() -> dict[str, int]:
            return {
                "limit": share.sought - len(rows),
                "max_bytes": share.max_bytes - total_size(rows),
            }

        if share.kinds and self._db.is_shared and is_short():
            rows += self._kinds.rest(share.kinds, self._lease_of(share, now=now, **limits()))
        # A chunk may hold fewer claimable ones than are wanted (dead ones, blocked ones).  With a
        # lease of no length what was just picked is due again, and must not be picked twice.
        while is_short() and found[no] == _CHUNK and self._lease_ms(share):
            found[no] = self.bring_back(no, now=now, limit=_CHUNK)
            rows += self._ask_pick(share, now=now, **limits()).rows()
        share.deal(rows)
        if share.is_full and self._db.is_shared:
            self._books.wake(no)  # what did not fit was locked: others may have found nothing

    def _lease_alone(self, share: Share, found: dict[int, int], *, now: int) -> None:
        claim, lease_ms = share.claims[0], self._lease_ms(share)
        try:
            again = self._repeats.again(claim, now=now, lease_ms=lease_ms)
        except ClaimNotRepeatable as error:
            share.error = error
            return
        if again is not None:
            share.parts = [again] if again else []
        elif self._is_run(share):
            self._take_run(share, found, now=now)
        else:
            self._pick(share, found, now=now)
        if again is None:
            self._repeats.remember(claim, share.messages, now=now)

    def _is_run(self, share: Share) -> bool:
        """Elsewhere a group is only a label; and of a single message nothing follows."""
        in_a_row = share.claims[0].in_a_row and share.wanted > 1
        return in_a_row and self._books.queue(share.queue_no).is_ordered

    def _take_run(self, share: Share, found: dict[int, int], *, now: int) -> None:
        """As for others: go on while what has fallen due may hold more that can be claimed."""
        no, lease_ms = share.queue_no, self._lease_ms(share)
        self._limit(share, now=now)
        messages: list[Message] = []
        max_bytes, is_full = share.max_bytes, False
        while len(messages) < share.sought:
            limit = share.sought - len(messages)
            lease = self._lease_of(share, limit=limit, max_bytes=max_bytes, now=now)
            more = self._runs.claim(lease)
            messages += more
            max_bytes -= sum(m.size for m in more)
            is_full = max_bytes * 2 < share.max_bytes
            if len(more) == limit or is_full or found[no] < _CHUNK or not lease_ms:
                break
            found[no] = self.bring_back(no, now=now, limit=_CHUNK)
        share.is_short = len(messages) < share.sought and not is_full
        share.parts = [messages] if messages else []
        self._count(share, now=now)

    def _count(self, share: Share, *, now: int) -> None:
        messages = share.messages
        freed = freed_by_claim(messages)
        if freed:
            give_back(self._books, freed)
        count = self._books.count(share.queue_no)
        count.ready -= len(messages)
        count.leased += len(messages)
        count.claimed_total += len(messages)
        if share.most is not None:
            is_short = share.is_short and share.kinds is None
            self._allowances.took(share.queue_no, messages, is_short=is_short, now=now)

    def _lease_ms(self, share: Share) -> int:
        if share.claims[0].lease_ms is not None:
            return share.claims[0].lease_ms
        return self._books.queue(share.queue_no).settings.lease_ms

    def _ask_pick(
        self, share: Share, *, limit: int, now: int, max_bytes: int | None = None
    ) -> Answer:
        lease = self._lease_of(share, limit=limit, max_bytes=max_bytes, now=now)
        if share.kinds is not None:
            return self._kinds.ask(share.kinds, lease)
        return ask_front(self._db, lease)

    def _lease_of(
        self, share: Share, *, limit: int, now: int, max_bytes: int | None = None
    ) -> dict[str, Any]:
        return {
            "queue_no": share.queue_no,
            "now": now,
            "due_at": now + self._lease_ms(share),
            "claimed_by": share.claims[0].claimed_by,
            "limit": limit,
            "max_bytes": share.max_bytes if max_bytes is None else max_bytes,
        }

    def _share_out(self, shares: list[Share], answers: list[Claimed | PenstockError]) -> None:
        asked = {
            share.queue_no: self._db.ask("messages.next_due", {"queue_no": share.queue_no})
            for share in shares
            if share.somebody_gets_nothing
        }
        contents = self.contents([m for share in shares for m in share.messages])
        next_due = {no: answer.rows() for no, answer in asked.items()}
        for share in shares:
            if share.error is not None:
                answers[share.places[0]] = share.error
                continue
            for i, part in zip(share.places, share.parts, strict=False):
                answers[i] = Claimed([(m, contents[m.message_no]) for m in part])
            served = len(share.parts)
            for i, claim in zip(share.places[served:], share.claims[served:], strict=True):
                if (due_at := self._next_due(next_due, claim)) is not None:
                    answers[i] = Claimed([], due_at)

    def _next_due(self, found: dict[int, list[Row]], claim: Claim) -> int | None:
        instants = [due_at for (due_at,) in found[claim.queue_no]]
        if self._books.steered and claim.queue_no in self._books.steered:
            allowed_at = self._allowances.next_at(claim.queue_no, now=claim.now)
            instants += [] if allowed_at is None else [allowed_at]
        return min(instants, default=None)


def content_of(row: Row) -> Content:
    body, attributes, trace = row
    return Content(body, _attributes.decode(attributes) if attributes else None, trace)
