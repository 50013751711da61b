"""The buckets of rates, kept where all nodes see them.  Whoever changes one has its line locked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.domain.queue import rate as pace
from penstock.domain.queue.rate import Bucket, Rate
from penstock.store.verbs.transaction_state import Books, json_list

OF_QUEUE = ""  # in place of a group, whose name is never that short

Group = tuple[int, str]


class Paces:
    def __init__(self, books: Books) -> None:
        self._db = books.db

    def find(self, rates: Mapping[Group, Rate], *, now: int) -> dict[Group, Bucket]:
        """The buckets of these; one that is not known is full."""
        found = {group: pace.full(rate, now=now) for group, rate in rates.items()}
        if rates:
            rows = self._db.rows("paces.find", {"groups": json_list(sorted(rates))})
            found |= {(no, group): Bucket(credit, at) for no, group, credit, at in rows}
        return found

    def keep(self, buckets: Iterable[tuple[Group, Rate, Bucket]]) -> None:
        rows = [
            (no, group, bucket.credit, bucket.paced_at, pace.full_at(bucket, rate))
            for (no, group), rate, bucket in buckets
        ]
        if rows:
            self._db.insert("paces.keep", rows)

    def forget(self, *, now: int, limit: int) -> int:
        return self._db.run("paces.forget", {"now": now, "limit": limit})

    def forget_of_queue(self, queue_no: int, *, of_queue: bool) -> None:
        """The bucket of the queue, or those of its groups."""
        params = {"queue_no": queue_no, "of_queue": int(of_queue)}
        self._db.run("paces.forget_of_queue", params)
