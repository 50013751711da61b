"""Documents, facts, and which node runs each cluster duty."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from penstock.domain.document import Document, Latest
from penstock.domain.fact import Fact, FactFilter
from penstock.store.entities.entity import SqlEntity

_LAST = 2**62


class SqlDocuments(SqlEntity):
    def find(self, name: str) -> Document | None:
        rows = self._db.rows("documents.find", {"name": name})
        return Document(*rows[0]) if rows else None

    def latest(self, name: str) -> Latest:
        rows = self._db.rows("documents.latest", {"name": name})
        return Latest(*rows[0]) if rows else Latest(None, 0)

    def lock(self, name: str, *, now: int) -> Document | None:
        # A missing row cannot be locked: two creators would not see each other.
        self._db.run("documents.reserve", {"name": name, "now": now})
        [row] = self._db.rows("documents.lock", {"name": name})
        return None if row[1] is None else Document(*row)

    def put(self, name: str, text: str, *, now: int) -> Document:
        [row] = self._db.rows("documents.put", {"name": name, "text": text, "now": now})
        return Document(*row)

    def remove(self, name: str, *, now: int) -> int:
        rows = self._db.rows("documents.remove", {"name": name, "now": now})
        return int(rows[0][0]) if rows else 0


class SqlDuties(SqlEntity):
    def take(self, name: str, *, for_ms: int, now: int, holder: str = "") -> int | None:
        params = {"name": name, "until_at": now + for_ms, "holder": holder, "now": now}
        rows = self._db.rows("duties.take", params)
        return int(rows[0][0]) if rows else None

    def until(self, name: str) -> int | None:
        rows = self._db.rows("duties.until", {"name": name})
        return int(rows[0][0]) if rows else None

    def restart(self, name: str) -> None:
        self._db.run("duties.restart", {"name": name})

    def lead(self, name: str, *, holder: str, for_ms: int, now: int) -> bool:
        params = {
            "name": name,
            "until_at": now + for_ms,
            "holder": holder,
            "now": now,
            # The clocks of nodes differ a little, which must not end the holder's term.
            "absurd_at": now + 2 * for_ms,
        }
        return bool(self._db.rows("duties.lead", params))

    def leave(self, name: str, *, holder: str) -> None:
        self._db.run("duties.leave", {"name": name, "holder": holder})


class SqlFacts(SqlEntity):
    """Facts: added, searched, pruned by age; never changed."""

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
