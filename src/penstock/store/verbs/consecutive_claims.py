"""Consecutive claims: the first message of a group and those behind it, group after group.

An ordinary claim takes one message per group, a consecutive one as many as are ready: a run.
`is_blocked` does not change: each message of a run stays blocked until those before it have ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.domain.message.lifecycle import Message
from penstock.store.database import Row
from penstock.store.verbs.fronts import lease_fitting
from penstock.store.verbs.transaction_state import TransactionState, json_list, message_of


class ConsecutiveClaims:
    def __init__(self, transaction: TransactionState) -> None:
        self._transaction = transaction
        self._db = transaction.db

    def claim(self, lease: dict[str, Any]) -> list[Message]:
        """Lease up to `limit` messages and `max_bytes`, in the order of handling."""
        params = {name: lease[name] for name in ("queue_no", "now", "limit")}
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
