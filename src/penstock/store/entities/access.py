"""API keys, and logins of the console."""

from __future__ import annotations

import msgspec

from penstock.domain.access.api_key import ApiKey, Role
from penstock.domain.access.login import Login
from penstock.store.database import Row
from penstock.store.entities.entity import SqlEntity, params_of

_ADDED = ("key_id", "name", "secret_hash", "created_at", "signed_with", "expires_at")


class SqlKeys(SqlEntity):
    def add(self, key: ApiKey) -> None:
        lists = {"roles": " ".join(key.roles), "queues": " ".join(key.queues)}
        self._db.run("keys.add", params_of(key, _ADDED) | lists)

    def all(self) -> list[ApiKey]:
        return list(map(_key_of, self._db.rows("keys.all")))

    def revoke(self, key_id: str, *, now: int) -> bool:
        return self._db.run("keys.revoke", {"key_id": key_id, "now": now}) == 1

    def use(self, key_id: str, *, now: int) -> None:
        self._db.run("keys.use", {"key_id": key_id, "now": now})


class SqlLogins(SqlEntity):
    def add(self, login: Login) -> None:
        self._db.run("logins.add", msgspec.structs.asdict(login))

    def find(self, token_hash: str) -> Login | None:
        rows = self._db.rows("logins.find", {"token_hash": token_hash})
        return Login(token_hash, *rows[0]) if rows else None

    def remove(self, token_hash: str) -> None:
        self._db.run("logins.remove", {"token_hash": token_hash})

    def prune(self, *, now: int) -> int:
        return self._db.run("logins.prune", {"now": now})


def _key_of(row: Row) -> ApiKey:
    values = dict(zip(ApiKey.__struct_fields__, row, strict=True))
    values["roles"] = tuple(map(Role, values["roles"].split()))
    values["queues"] = tuple(values["queues"].split())
    return ApiKey(**values)
