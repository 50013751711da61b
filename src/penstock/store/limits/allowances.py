"""How many messages claims may take from limited queues, and recording what they took."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.message.lifecycle import Message
from penstock.domain.queue import rate as token_bucket
from penstock.domain.queue.rate import Bucket, Rate
from penstock.store.limits.fair_positions import FairPositions
from penstock.store.limits.group_limits import GroupLimits
from penstock.store.limits.rates import OF_QUEUE, RateBuckets
from penstock.store.verbs.transaction_state import TransactionState, json_list


class Allowances:
    def __init__(self, transaction: TransactionState, openings: GroupLimits) -> None:
        self._transaction = transaction
        self._group_limits = openings
        self._positions = FairPositions(transaction)
        self._rate_buckets = RateBuckets(transaction)
        self.begin()

    def begin(self) -> None:
        """Forget what was read in another transaction."""
        self._buckets: dict[int, Bucket] = {}
        self._stored: dict[int, int] = {}

    def max_claimable(self, queue_no: int, wanted: int, *, now: int) -> int:
        """How many of the wanted messages the queue's limits allow."""
        self._transaction.require_queue_locks({queue_no})
        settings = self._transaction.queue(queue_no).settings
        if settings.rate is not None:
            bucket = self._bucket(queue_no, settings.rate, now=now)
            wanted = min(wanted, token_bucket.available(bucket, settings.rate, now=now))
        if settings.max_leased is not None:
            wanted = min(wanted, settings.max_leased - self._leased(queue_no))
        return max(0, wanted)

    def record_claim(
        self, queue_no: int, claimed: Sequence[Message], *, is_short: bool, now: int
    ) -> None:
        """Charge rates and advance fair positions; `is_short`: the claim left nothing claimable."""
        settings = self._transaction.queue(queue_no).settings
        if settings.rate is not None and claimed:
            bucket = self._bucket(queue_no, settings.rate, now=now)
            spent = token_bucket.spend(bucket, settings.rate, len(claimed), now=now)
            self._buckets[queue_no] = spent
            self._rate_buckets.save([((queue_no, OF_QUEUE), settings.rate, spent)])
        if settings.rate_per_group is not None:
            self._group_limits.charge(queue_no, claimed, now=now)
        if settings.is_fair:
            self._positions.record_claim(queue_no, claimed, is_short=is_short)

    def next_at(self, queue_no: int, *, now: int) -> int | None:
        """When the rate allows the next claim; None if it does now."""
        rate = self._transaction.queue(queue_no).settings.rate
        if rate is None:
            return None
        bucket = self._bucket(queue_no, rate, now=now)
        instant = token_bucket.available_at(bucket, rate, 1, now=now)
        return instant if instant > now else None

    def _bucket(self, queue_no: int, rate: Rate, *, now: int) -> Bucket:
        if queue_no not in self._buckets:
            found = self._rate_buckets.find({(queue_no, OF_QUEUE): rate}, now=now)
            self._buckets[queue_no] = found[queue_no, OF_QUEUE]
        return self._buckets[queue_no]

    def _leased(self, queue_no: int) -> int:
        """Leased messages: the stored counter plus the changes of this transaction."""
        if queue_no not in self._stored:
            rows = self._transaction.db.rows("queues.counts", {"queue_nos": json_list([queue_no])})
            self._stored[queue_no] = int(rows[0][3]) if rows else 0
        return self._stored[queue_no] + self._transaction.count(queue_no).leased
