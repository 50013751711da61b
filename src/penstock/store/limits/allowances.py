"""How much claims may take of queues that limit them, and what follows from what they took."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.message.lifecycle import Message
from penstock.domain.queue import rate as pace
from penstock.domain.queue.rate import Bucket, Rate
from penstock.store.limits.fair_positions import Turns
from penstock.store.limits.group_limits import Openings
from penstock.store.limits.rates import OF_QUEUE, Paces
from penstock.store.verbs.transaction_state import Books, json_list


class Allowances:
    def __init__(self, books: Books, openings: Openings) -> None:
        self._books = books
        self._openings = openings
        self._turns = Turns(books)
        self._paces = Paces(books)
        self.begin()

    def begin(self) -> None:
        """What was known belongs to another transaction."""
        self._buckets: dict[int, Bucket] = {}
        self._stored: dict[int, int] = {}

    def most(self, queue_no: int, wanted: int, *, now: int) -> int:
        """How many of those that are wanted may be taken."""
        self._books.need_lines({queue_no})
        settings = self._books.queue(queue_no).settings
        if settings.rate is not None:
            bucket = self._bucket(queue_no, settings.rate, now=now)
            wanted = min(wanted, pace.available(bucket, settings.rate, now=now))
        if settings.max_leased is not None:
            wanted = min(wanted, settings.max_leased - self._leased(queue_no))
        return max(0, wanted)

    def took(self, queue_no: int, claimed: Sequence[Message], *, is_short: bool, now: int) -> None:
        """`is_short`: nothing was left that the claim could take."""
        settings = self._books.queue(queue_no).settings
        if settings.rate is not None and claimed:
            bucket = self._bucket(queue_no, settings.rate, now=now)
            spent = pace.spend(bucket, settings.rate, len(claimed), now=now)
            self._buckets[queue_no] = spent
            self._paces.keep([((queue_no, OF_QUEUE), settings.rate, spent)])
        if settings.rate_per_group is not None:
            self._openings.charge(queue_no, claimed, now=now)
        if settings.is_fair:
            self._turns.pass_by(queue_no, claimed, is_short=is_short)

    def next_at(self, queue_no: int, *, now: int) -> int | None:
        """When the rate allows another one; None: it does now."""
        rate = self._books.queue(queue_no).settings.rate
        if rate is None:
            return None
        bucket = self._bucket(queue_no, rate, now=now)
        instant = pace.available_at(bucket, rate, 1, now=now)
        return instant if instant > now else None

    def _bucket(self, queue_no: int, rate: Rate, *, now: int) -> Bucket:
        if queue_no not in self._buckets:
            found = self._paces.find({(queue_no, OF_QUEUE): rate}, now=now)
            self._buckets[queue_no] = found[queue_no, OF_QUEUE]
        return self._buckets[queue_no]

    def _leased(self, queue_no: int) -> int:
        """By the counters, and by what this transaction has changed."""
        if queue_no not in self._stored:
            rows = self._books.db.rows("queues.counts", {"queue_nos": json_list([queue_no])})
            self._stored[queue_no] = int(rows[0][3]) if rows else 0
        return self._stored[queue_no] + self._books.count(queue_no).leased
