"""Claims in a row: the first message of a group and those behind it, group after group.

An ordinary claim takes one message of each group, this one as many as are ready.  Who is blocked
does not change by it: the others of a run stay blocked until those before them have ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.domain.message.lifecycle import Message
from penstock.store.database import Row
from penstock.store.verbs.fronts import lease_fitting
from penstock.store.verbs.transaction_state import Books, json_list, message_of


class Runs:
    def __init__(self, books: Books) -> None:
        self._books = books
        self._db = books.db

    def claim(self, lease: dict[str, Any]) -> list[Message]:
        """Lease up to `limit` messages and `max_bytes` in the order in which they are handled."""
        line = {name: lease[name] for name in ("queue_no", "now", "limit")}
        heads = self._db.rows("runs.heads", line)
        run = self._follow(heads, line)
        leased = {m.message_no: m for m in map(message_of, lease_fitting(self._db, run, lease))}
        if self._db.is_shared:
            self._offer_again(lease["queue_no"], heads, leased)
        return [leased[no] for no, _ in run if no in leased]

    def _follow(self, heads: list[Row], line: dict[str, int]) -> list[tuple[int, int]]:
        """Numbers and sizes of those to be leased: heads, each with those that follow it."""
        if all(group is None for _, group, _, _ in heads):
            return [(message_no, size) for message_no, _, _, size in heads]
        taken: list[tuple[int, int]] = []
        broken: set[int] = set()
        for place, message_no, is_mine, size in self._db.rows(
            "runs.walk", line | {"heads": json_list(heads)}
        ):
            if not is_mine:  # nobody behind it may come before it
                broken.add(place)
            if place not in broken:
                taken.append((message_no, size))
        return taken

    def _offer_again(self, queue_no: int, heads: list[Row], nos: Iterable[int]) -> None:
        """Heads that we locked and did not need: meanwhile others may have found nothing."""
        spared = len(heads) - len({head[0] for head in heads}.intersection(nos))
        if spared:
            self._books.wake(queue_no, spared)
