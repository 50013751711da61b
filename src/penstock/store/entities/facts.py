"""Facts: added, searched, pruned by age; never changed."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from penstock.domain.fact import Fact, FactFilter
from penstock.store.verbs.transaction_state import TransactionState

_LAST = 2**62


class SqlFacts:
    def __init__(self, transaction: TransactionState) -> None:
        self._db = transaction.db

    def add(self, kind: str, subject: str, *, at: int, data: Mapping[str, object]) -> None:
        text = msgspec.json.encode(data).decode()
        params = {"at": at, "kind": kind, "subject": subject, "data": text}
        self._db.run("facts.add", params)

    def search(self, wanted: FactFilter) -> list[Fact]:
        before_at, before_no = wanted.before or (_LAST, _LAST)
        params: dict[str, object] = {
            "from_at": wanted.from_at,
            "to_at": wanted.to_at,
            "before_at": before_at,
            "before_no": before_no,
            "limit": wanted.limit,
        }
        conditions = []
        for name in ("kind", "subject"):
            value = getattr(wanted, name)
            if value is not None:
                params[name] = value
                conditions.append(self._db.text(f"facts.where_{name}"))
        rows = self._db.rows("facts.search", params, conditions="\n   ".join(conditions))
        return [Fact(*row) for row in rows]

    def forget(self, *, before_at: int, limit: int, upto_no: int = _LAST) -> int:
        params = {"before_at": before_at, "upto_no": upto_no, "limit": limit}
        return self._db.run("facts.forget", params)
