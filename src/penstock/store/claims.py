"""Claiming: what has fallen due comes back first, then the front of the line is leased."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.domain import message as lifecycle
from penstock.domain.errors import QueueNotFound
from penstock.domain.history import Attempt, AttemptOutcome, attempt
from penstock.domain.message import Content, Message, State
from penstock.ports.store import Claim, Claimed
from penstock.store.books import Books, json_list, message_of
from penstock.store.changes import Changes
from penstock.store.database import Row

_CHUNK = 500  # how many fallen-due messages one step brings back
_attributes = msgspec.json.Decoder(dict[str, str])


class Claims:
    def __init__(self, books: Books, changes: Changes) -> None:
        self._books = books
        self._changes = changes
        self._db = books.db

    def claim(self, wanted: Sequence[Claim]) -> list[Claimed | QueueNotFound]:
        """Serve claims in the order given; those of one kind share a statement."""
        self._books.load_queues({claim.queue_no for claim in wanted})
        alike: dict[tuple[int, int | None, str | None], list[int]] = {}
        for i, claim in enumerate(wanted):
            key = (claim.queue_no, claim.lease_ms, claim.claimed_by)
            alike.setdefault(key, []).append(i)
        answers: list[Claimed | QueueNotFound] = [Claimed([])] * len(wanted)
        for (queue_no, _, _), places in alike.items():
            try:
                found = self._lease([wanted[i] for i in places])
            except QueueNotFound as error:
                found = [error] * len(places)
            for i, answer in zip(places, found, strict=True):
                answers[i] = answer
        return answers

    def bring_back(self, queue_no: int, *, now: int, limit: int) -> int:
        """Put what has fallen due back in line: delays that are over, leases that ran out."""
        params = {"queue_no": queue_no, "now": now, "limit": limit}
        rows = self._db.rows("messages.fallen_due", params)
        if rows:
            queue = self._books.queue(queue_no)
            for before in map(message_of, rows):
                ended: Attempt | None = None
                if before.state is State.LEASED:
                    after = lifecycle.expire_lease(before, queue, now=now)
                    ended = attempt(before, AttemptOutcome.EXPIRED, now=now)
                else:
                    after = lifecycle.fall_due(before, queue, now=now)
                if lifecycle.is_expired(after, now=now):
                    after = lifecycle.expire(after, now=now)
                self._changes.note(before, after, now=now, ended_lease=ended)
            self._changes.save()
        return len(rows)

    def expire(self, queue_no: int, *, now: int, limit: int) -> int:
        """Cancel what is too old to be of use."""
        params = {"queue_no": queue_no, "now": now, "limit": limit}
        rows = self._db.rows("messages.expired", params)
        for before in map(message_of, rows):
            self._changes.note(before, lifecycle.expire(before, now=now), now=now)
        self._changes.save()
        return len(rows)

    def _lease(self, alike: list[Claim]) -> list[Claimed | QueueNotFound]:
        now = max(claim.now for claim in alike)
        queue = self._books.queue(alike[0].queue_no)
        if not queue.is_claimable:
            return [Claimed([]) for _ in alike]
        self.expire(queue.queue_no, now=now, limit=_CHUNK)
        lease_ms = queue.settings.lease_ms if alike[0].lease_ms is None else alike[0].lease_ms
        wanted = sum(claim.limit for claim in alike)
        found = self.bring_back(queue.queue_no, now=now, limit=_CHUNK)
        rows = self._pick(alike[0], limit=wanted, now=now, lease_ms=lease_ms)
        # A chunk may hold fewer claimable ones than are wanted (dead ones, blocked ones).  With a
        # lease of no length what was just picked is due again, and must not be picked twice.
        while len(rows) < wanted and found == _CHUNK and lease_ms:
            found = self.bring_back(queue.queue_no, now=now, limit=_CHUNK)
            rows += self._pick(alike[0], limit=wanted - len(rows), now=now, lease_ms=lease_ms)
        messages = sorted(map(message_of, rows), key=lambda m: (m.priority, m.order_no))
        count = self._books.count(queue.queue_no)
        count.ready -= len(messages)
        count.leased += len(messages)
        count.claimed_total += len(messages)
        return self._share_out(messages, alike)

    def _pick(self, claim: Claim, *, limit: int, now: int, lease_ms: int) -> list[Row]:
        params = {
            "queue_no": claim.queue_no,
            "now": now,
            "due_at": now + lease_ms,
            "claimed_by": claim.claimed_by,
            "limit": limit,
        }
        return self._db.rows("messages.claim", params)

    def _share_out(
        self, messages: list[Message], alike: list[Claim]
    ) -> list[Claimed | QueueNotFound]:
        contents = self.contents(messages)
        next_due_at: int | None = None
        if len(messages) <= sum(claim.limit for claim in alike[:-1]):  # the last one gets nothing
            rows = self._db.rows("messages.next_due", {"queue_no": alike[0].queue_no})
            next_due_at = rows[0][0] if rows else None
        answers: list[Claimed | QueueNotFound] = []
        start = 0
        for claim in alike:
            part = messages[start : start + claim.limit]
            start += len(part)
            pairs = [(m, contents[m.message_no]) for m in part]
            answers.append(Claimed(pairs, None if pairs else next_due_at))
        return answers

    def contents(self, messages: Sequence[Message]) -> dict[int, Content]:
        by_day: dict[int, list[int]] = {}
        for m in messages:
            by_day.setdefault(m.body_day, []).append(m.message_no)
        found: dict[int, Content] = {}
        for day, nos in by_day.items():
            for row in self._db.rows("messages.bodies", {"message_nos": json_list(nos)}, day=day):
                found[row[0]] = content_of(row[1:])
        return found


def content_of(row: Row) -> Content:
    body, attributes, trace = row
    return Content(body, _attributes.decode(attributes) if attributes else None, trace)
