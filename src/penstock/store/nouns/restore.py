"""Messages that come back from the lake: which are here already, and what they had behind them."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.message.lifecycle import Message
from penstock.store.verbs.transaction_state import Books, json_list

_PAST = ("attempts", "failures", "crashes", "lease_no", "first_leased_at", "last_error")


class SqlRestoring:
    def __init__(self, books: Books) -> None:
        self._books = books
        self._db = books.db

    def known(self, ids: Sequence[str]) -> set[str]:
        """Those that are here, or have ended here as far as is remembered."""
        params = {"ids": json_list(list(ids))}
        asked = [self._db.ask("restoring.known_live", params)]
        for day in self._books.partitions.days():
            asked.append(self._db.ask("restoring.known_ended", params, day=day))
        return {row[0] for answer in asked for row in answer.rows()}

    def set_past(self, messages: Sequence[Message]) -> None:
        """Of messages that were sent in this transaction."""
        rows = [{"id": m.id} | {name: getattr(m, name) for name in _PAST} for m in messages]
        if rows:
            self._db.update("restoring.set_past", rows)
