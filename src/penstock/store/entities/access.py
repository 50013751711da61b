"""API keys, and logins of the console."""

from __future__ import annotations

from penstock.domain.access.api_key import ApiKey, Role
from penstock.domain.access.login import Login
from penstock.store.verbs.transaction_state import TransactionState


class SqlKeys:
    def __init__(self, transaction: TransactionState) -> None:
        self._db = transaction.db

    def add(self, key: ApiKey) -> None:
        params = {
            "key_id": key.key_id,
            "name": key.name,
            "secret_hash": key.secret_hash,
            "roles": " ".join(key.roles),
            "queues": " ".join(key.queues),
            "created_at": key.created_at,
            "signed_with": key.signed_with,
        }
        self._db.run("keys.add", params)

    def all(self) -> list[ApiKey]:
        return [
            ApiKey(
                key_id=row[0],
                name=row[1],
                secret_hash=row[2],
                roles=tuple(Role(role) for role in row[3].split()),
                queues=tuple(row[4].split()),
                created_at=row[5],
                revoked_at=row[6],
                signed_with=row[7],
            )
            for row in self._db.rows("keys.all")
        ]

    def revoke(self, key_id: str, *, now: int) -> bool:
        return self._db.run("keys.revoke", {"key_id": key_id, "now": now}) == 1


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
