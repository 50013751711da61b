"""Claims of some kinds only: the front of each, and of all these the front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.store.database import Answer, Row
from penstock.store.verbs.fronts import lease_fitting
from penstock.store.verbs.transaction_state import Books, json_list


class Kinds:
    def __init__(self, books: Books) -> None:
        self._books = books
        self._db = books.db

    def ask(self, kinds: Sequence[str], lease: dict[str, Any]) -> Answer:
        return self._db.ask("kinds.claim", lease | {"kinds": json_list(kinds)})

    def rest(self, kinds: Sequence[str], lease: dict[str, Any]) -> list[Row]:
        """Where several nodes claim: what others have just locked was in front of us, and of other
        kinds there may be more."""
        names = ("queue_no", "now", "limit")
        line = {name: lease[name] for name in names} | {"kinds": json_list(kinds)}
        free = self._db.rows("kinds.free_fronts", line)
        rows = lease_fitting(self._db, free[: lease["limit"]], lease)
        if len(free) > len(rows):  # locked and not needed: meanwhile others may have found nothing
            self._books.wake(lease["queue_no"], len(free) - len(rows))
        return rows
