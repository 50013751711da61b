"""Leases first messages that fit into one answer: of a queue, of some kinds, or of its groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from penstock.domain.message.lifecycle import Message
from penstock.domain.message.selection import count_fitting
from penstock.store.database import Database, QueryResult, Row
from penstock.store.dead_rows.dead_rows import as_lists
from penstock.store.dead_rows.front_parts import EVERYTHING
from penstock.store.verbs.transaction_state import TransactionState, json_list, message_of

_HEAD = ("queue_no", "now", "limit")
_LEASE = ("now", "due_at", "claimed_by")
_KIND_AT = 4  # in a part of an index


def ask_head(transaction: TransactionState, lease: dict[str, Any]) -> QueryResult:
    """Lease up to `limit` messages and `max_bytes`, but at least one message."""
    db = transaction.db
    parts = transaction.parts(lease["queue_no"])
    if parts is not None:
        return ask_parts(db, "dead_rows.claim", lease, parts)
    # Without a network round trip, a separate query for the size is cheaper than one in the claim.
    if db.is_shared or (lease["limit"] > 1 and _head_size(db, lease) > lease["max_bytes"]):
        return db.ask("messages.claim", lease)
    return db.ask("queue_heads.claim_small", {n: lease[n] for n in (*_HEAD, *_LEASE)})


def ask_parts(
    db: Database, name: str, params: dict[str, Any], parts: Sequence[Sequence[object]]
) -> QueryResult:
    """A query of dead_rows.sql, which reads some parts of an index."""
    condition = db.text("dead_rows.unexpired") if "now" in params else ""
    if len(parts[0]) > _KIND_AT:
        condition += "\n" + db.text("dead_rows.of_kind")
    ready = partial(db.text, "dead_rows.ready", condition=condition)
    skip = "FOR UPDATE SKIP LOCKED"
    db.post("dead_rows.read_in_order")
    return db.ask(
        name,
        params | {"parts": json_list(parts)},
        ready=ready(limit=":limit", lock=""),
        locked=ready(limit=":limit", lock=skip),
        wanted=ready(limit="r.wanted", lock=skip),
    )


def lease_fitting(db: Database, first: Sequence[Row], lease: dict[str, Any]) -> list[Row]:
    """Lease what fits of `first`: numbers and sizes of messages that we have locked."""
    count = count_fitting((size for _, size in first), lease["max_bytes"])
    nos = [message_no for message_no, _ in first[:count]]
    if not nos:
        return []
    params = {name: lease[name] for name in _LEASE} | {"message_nos": json_list(nos)}
    return db.rows("queue_heads.lease", params)


class ClaimsByKind:
    """Claims of some kinds only: merges the first messages of these kinds, in order."""

    def __init__(self, transaction: TransactionState) -> None:
        self._transaction = transaction
        self._db = transaction.db

    def ask(self, kinds: Sequence[str], lease: dict[str, Any]) -> QueryResult:
        parts = self._parts(lease["queue_no"], kinds)
        if parts is not None:
            return ask_parts(self._db, "dead_rows.claim_kinds", lease, parts)
        return self._db.ask("claims_by_kind.claim", lease | {"kinds": json_list(kinds)})

    def rest(self, kinds: Sequence[str], lease: dict[str, Any]) -> list[Row]:
        """Lease what `ask` has missed because other nodes had locked the first messages.

        There may be more messages of these kinds behind them.
        """
        params = {name: lease[name] for name in _HEAD}
        parts = self._parts(lease["queue_no"], kinds)
        if parts is not None:
            free = ask_parts(self._db, "dead_rows.free_heads", params, parts).rows()
        else:
            params["kinds"] = json_list(kinds)
            free = self._db.rows("claims_by_kind.free_heads", params)
        rows = lease_fitting(self._db, free[: lease["limit"]], lease)
        if len(free) > len(rows):  # locked but not needed: other claims may have missed them
            self._transaction.wake(lease["queue_no"], len(free) - len(rows))
        return rows

    def _parts(self, queue_no: int, kinds: Sequence[str]) -> list[list[object]] | None:
        """Those of all kinds, each with its kind; None if all of them are read everywhere."""
        if queue_no not in self._transaction.dead_rows.queues:
            return None
        found = {kind: self._transaction.parts(queue_no, kind) for kind in kinds}
        if not any(found.values()):
            return None
        return [
            [*part, kind] for kind, parts in found.items() for part in parts or as_lists(EVERYTHING)
        ]


class ConsecutiveClaims:
    """Claims of the first message of a group and those behind it, group after group.

    An ordinary claim takes one message per group, a consecutive one as many as are ready: a run.
    `is_blocked` does not change: each of a run stays blocked until those before it have ended.
    """

    def __init__(self, transaction: TransactionState) -> None:
        self._transaction = transaction
        self._db = transaction.db

    def claim(self, lease: dict[str, Any]) -> list[Message]:
        """Lease up to `limit` messages and `max_bytes`, in the order of handling."""
        params = {name: lease[name] for name in ("queue_no", "now", "limit")}
        parts = self._transaction.parts(lease["queue_no"])
        if parts is not None:
            heads = ask_parts(self._db, "dead_rows.heads", params, parts).rows()
        else:
            heads = self._db.rows("consecutive_claims.heads", params)
        run = self._follow(heads, params)
        leased = {m.message_no: m for m in map(message_of, lease_fitting(self._db, run, lease))}
        if self._db.is_shared:
            self._offer_again(lease["queue_no"], heads, leased)
        return [leased[no] for no, _ in run if no in leased]

    def _follow(self, heads: list[Row], params: dict[str, int]) -> list[tuple[int, int]]:
        """Numbers and sizes of messages to lease: each head with those that follow it."""
        if all(group is None for _, group, _, _ in heads):
            return [(message_no, size) for message_no, _, _, size in heads]
        taken: list[tuple[int, int]] = []
        broken: set[int] = set()
        for place, message_no, is_mine, size in self._db.rows(
            "consecutive_claims.walk", params | {"heads": json_list(heads)}
        ):
            if not is_mine:  # those behind it must not overtake it
                broken.add(place)
            if place not in broken:
                taken.append((message_no, size))
        return taken

    def _offer_again(self, queue_no: int, heads: list[Row], nos: Iterable[int]) -> None:
        """Wake claims for heads that we locked but did not need: they may have missed them."""
        spared = len(heads) - len({head[0] for head in heads}.intersection(nos))
        if spared:
            self._transaction.wake(queue_no, spared)


def _head_size(db: Database, lease: dict[str, Any]) -> int:
    [(size,)] = db.rows("queue_heads.size", {name: lease[name] for name in _HEAD})
    return int(size)
