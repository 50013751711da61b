"""Which files this process has open through SQLite."""

from __future__ import annotations

import apsw


def connections_to(path: object) -> list[apsw.Connection]:
    """All there are, also those that nobody remembers."""
    return [db for db in apsw.connections() if _file_of(db) == str(path)]


def _file_of(db: apsw.Connection) -> str | None:
    """None: it is at work in another thread, so it is of a server that other tests share."""
    try:
        return db.filename
    except apsw.ThreadingViolationError:
        return None
