"""The application's own database: a SQLite file or PostgreSQL, by URL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg

_BUSY_S = 30  # other processes write to the file, too


@contextmanager
def transaction(url: str) -> Iterator[Any]:
    """Committed at its end, rolled back by an exception, gone with a killed process."""
    if not url.startswith("sqlite"):
        with psycopg.connect(url) as connection:
            yield connection
        return
    with closing(_open_file(url)) as file:
        file.execute("BEGIN IMMEDIATE")
        yield file
        if file.in_transaction:
            file.execute("COMMIT")


def numbers(url: str, table: str) -> list[int]:
    """The first column of a table, sorted."""
    opened: Any = _open_file(url) if url.startswith("sqlite") else psycopg.connect(url)
    with closing(opened) as connection:
        found = connection.execute(f"SELECT * FROM {table}").fetchall()
    return sorted(row[0] for row in found)


def tables(url: str) -> set[str]:
    listing = "SELECT name FROM sqlite_master WHERE type = 'table'"
    if not url.startswith("sqlite"):
        listing = "SELECT tablename FROM pg_tables"
    opened: Any = _open_file(url) if url.startswith("sqlite") else psycopg.connect(url)
    with closing(opened) as connection:
        return {name for (name,) in connection.execute(listing).fetchall()}


def _open_file(url: str) -> sqlite3.Connection:
    path = url.removeprefix("sqlite:///").partition("?")[0]
    return sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
