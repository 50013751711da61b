"""Storage that fails in the middle of a transaction, and works again for the next one.

No part of the store is replaced: SQLite gets a limit for its file, and PostgreSQL cuts off
its own sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg

from penstock.ports.store import Session

Break = Callable[[Session], None]

TOO_BIG = '"' + "x" * 100_000 + '"'


def no_room(session: Any) -> None:
    """From here on every statement that needs another page fails; new connections work."""
    # The limit cannot be below the current size: so no page can be added.
    session.db.script("PRAGMA max_page_count = 1")


def cut_off(url: str) -> Break:
    """From here on, all connections to the database are dead."""

    def do(_: Session) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    return do
