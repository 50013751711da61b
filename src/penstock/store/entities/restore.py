"""Messages restored from the lake: finds known ones, and sets their earlier attempts and errors."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.message.lifecycle import Message
from penstock.store.verbs.transaction_state import TransactionState, json_list

_PAST = ("attempts", "failures", "crashes", "lease_no", "first_leased_at", "last_error")


class SqlRestoring:
    def __init__(self, transaction: TransactionState) -> None:
        self._transaction = transaction
        self._db = transaction.db

    def known(self, ids: Sequence[str]) -> set[str]:
        """The ids that the store has, live or in its history."""
        params = {"ids": json_list(list(ids))}
        asked = [self._db.ask("restore.known_live", params)]
        for day in self._transaction.partitions.days():
            asked.append(self._db.ask("restore.known_ended", params, day=day))
        return {row[0] for answer in asked for row in answer.rows()}

    def set_past(self, messages: Sequence[Message]) -> None:
        """Set attempts and errors of messages that were sent in this transaction."""
        rows = [{"id": m.id} | {name: getattr(m, name) for name in _PAST} for m in messages]
        if rows:
            self._db.update("restore.set_past", rows)
