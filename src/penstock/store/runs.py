"""Claims in a row: the first message of a group and those behind it, group after group.

An ordinary claim takes one message of each group, this one as many as are ready.  Who is blocked
does not change by it: the others of a run stay blocked until those before them have ended.
"""

from __future__ import annotations

from penstock.domain.message import Message
from penstock.store.books import Books, json_list, message_of
from penstock.store.database import Row


class Runs:
    def __init__(self, books: Books) -> None:
        self._books = books
        self._db = books.db

    def claim(
        self, queue_no: int, *, limit: int, now: int, due_at: int, claimed_by: str | None
    ) -> list[Message]:
        """Lease up to `limit` messages in the order in which they are to be handled."""
        line = {"queue_no": queue_no, "now": now, "limit": limit}
        heads = self._db.rows("runs.heads", line)
        nos = self._follow(heads, line)
        if self._db.is_shared:
            self._offer_again(queue_no, heads, nos)
        if not nos:
            return []
        lease = {"now": now, "due_at": due_at, "claimed_by": claimed_by}
        rows = self._db.rows("runs.lease", lease | {"message_nos": json_list(nos)})
        leased = {m.message_no: m for m in map(message_of, rows)}
        return [leased[no] for no in nos]

    def _follow(self, heads: list[Row], line: dict[str, int]) -> list[int]:
        """The numbers of those to be leased: heads, each with those that follow it."""
        if all(group is None for _, group, _ in heads):
            return [message_no for message_no, _, _ in heads]
        taken: list[int] = []
        broken: set[int] = set()
        for place, message_no, is_mine in self._db.rows(
            "runs.walk", line | {"heads": json_list(heads)}
        ):
            if not is_mine:  # nobody behind it may come before it
                broken.add(place)
            if place not in broken:
                taken.append(message_no)
        return taken

    def _offer_again(self, queue_no: int, heads: list[Row], nos: list[int]) -> None:
        """Heads that we locked and did not need: meanwhile others may have found nothing."""
        spared = len(heads) - len({message_no for message_no, _, _ in heads}.intersection(nos))
        if spared:
            self._books.wake(queue_no, spared)
