"""Which files this process has open through SQLite."""

from __future__ import annotations

import apsw


def connections_to(path: object) -> list[apsw.Connection]:
    """All of them, also those without a reference elsewhere."""
    return [db for db in apsw.connections() if _file_of(db) == str(path)]


def _file_of(db: apsw.Connection) -> str | None:
    """None: another thread uses it, so it belongs to a server that other tests share."""
    try:
        return db.filename
    except apsw.ThreadingViolationError:
        return None
