"""Logins of the console."""

from __future__ import annotations

from penstock.domain.access.login import Login
from penstock.store.verbs.transaction_state import TransactionState


class SqlLogins:
    def __init__(self, transaction: TransactionState) -> None:
        self._db = transaction.db

    def add(self, login: Login) -> None:
        params = {
            "token_hash": login.token_hash,
            "key_id": login.key_id,
            "until_at": login.until_at,
        }
        self._db.run("logins.add", params)

    def find(self, token_hash: str) -> Login | None:
        rows = self._db.rows("logins.find", {"token_hash": token_hash})
        return Login(token_hash, *rows[0]) if rows else None

    def remove(self, token_hash: str) -> None:
        self._db.run("logins.remove", {"token_hash": token_hash})

    def prune(self, *, now: int) -> int:
        return self._db.run("logins.prune", {"now": now})
