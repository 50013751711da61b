"""Leases as much of the front of a queue, or of some kinds in it, as fits into one answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.domain.message.selection import count_fitting
from penstock.store.database import Database, QueryResult, Row
from penstock.store.verbs.transaction_state import TransactionState, json_list

_FRONT = ("queue_no", "now", "limit")
_LEASE = ("now", "due_at", "claimed_by")


def ask_front(db: Database, lease: dict[str, Any]) -> QueryResult:
    """Lease up to `limit` messages and `max_bytes`, but at least one message."""
    # Without a network round trip, a separate query for the size is cheaper than one in the claim.
    if db.is_shared or (lease["limit"] > 1 and _front_size(db, lease) > lease["max_bytes"]):
        return db.ask("messages.claim", lease)
    return db.ask("fronts.claim_small", {n: lease[n] for n in (*_FRONT, *_LEASE)})


def lease_fitting(db: Database, front: Sequence[Row], lease: dict[str, Any]) -> list[Row]:
    """Lease what fits of `front`: numbers and sizes of messages that we have locked."""
    count = count_fitting((size for _, size in front), lease["max_bytes"])
    nos = [message_no for message_no, _ in front[:count]]
    if not nos:
        return []
    params = {name: lease[name] for name in _LEASE} | {"message_nos": json_list(nos)}
    return db.rows("fronts.lease", params)


class ClaimsByKind:
    """Claims of some kinds only: merges the fronts of these kinds, in order."""

    def __init__(self, transaction: TransactionState) -> None:
        self._transaction = transaction
        self._db = transaction.db

    def ask(self, kinds: Sequence[str], lease: dict[str, Any]) -> QueryResult:
        return self._db.ask("claims_by_kind.claim", lease | {"kinds": json_list(kinds)})

    def rest(self, kinds: Sequence[str], lease: dict[str, Any]) -> list[Row]:
        """Lease what `ask` has missed because other nodes had locked the front.

        There may be more messages of these kinds behind it.
        """
        params = {name: lease[name] for name in _FRONT} | {"kinds": json_list(kinds)}
        free = self._db.rows("claims_by_kind.free_fronts", params)
        rows = lease_fitting(self._db, free[: lease["limit"]], lease)
        if len(free) > len(rows):  # locked but not needed: other claims may have missed them
            self._transaction.wake(lease["queue_no"], len(free) - len(rows))
        return rows


def _front_size(db: Database, lease: dict[str, Any]) -> int:
    [(size,)] = db.rows("fronts.size", {name: lease[name] for name in _FRONT})
    return int(size)
