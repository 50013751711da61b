"""Token buckets of rate limits, shared by all nodes.  Changing one requires the queue's lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.domain.queue import rate as token_bucket
from penstock.domain.queue.rate import Bucket, Rate
from penstock.store.verbs.transaction_state import TransactionState, json_list

OF_QUEUE = ""  # the bucket of the queue itself; the name of a group is never empty

Group = tuple[int, str]


class RateBuckets:
    def __init__(self, transaction: TransactionState) -> None:
        self._db = transaction.db

    def find(self, rates: Mapping[Group, Rate], *, now: int) -> dict[Group, Bucket]:
        """The buckets of these groups; a bucket without a row is full."""
        found = {group: token_bucket.full(rate, now=now) for group, rate in rates.items()}
        if rates:
            rows = self._db.rows("rates.find", {"groups": json_list(sorted(rates))})
            found |= {(no, group): Bucket(credit, at) for no, group, credit, at in rows}
        return found

    def save(self, buckets: Iterable[tuple[Group, Rate, Bucket]]) -> None:
        rows = [
            (no, group, bucket.credit, bucket.credited_at, token_bucket.full_at(bucket, rate))
            for (no, group), rate, bucket in buckets
        ]
        if rows:
            self._db.insert("rates.save", rows)

    def forget(self, *, now: int, limit: int) -> int:
        return self._db.run("rates.forget", {"now": now, "limit": limit})

    def forget_of_queue(self, queue_no: int, *, of_queue: bool) -> None:
        """Forget the bucket of the queue, or those of its groups."""
        params = {"queue_no": queue_no, "of_queue": int(of_queue)}
        self._db.run("rates.forget_of_queue", params)
