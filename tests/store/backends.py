"""Opening a fresh store of each backend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg

from penstock.ports.store import Store
from penstock.store.postgres.store import migrate, open_postgres
from penstock.store.store import open_sqlite

BACKENDS = ("sqlite", "postgres")
PLAIN = "sqlite, plain"  # without checksums: opened through Python's sqlite3

Open = Callable[[], Store]


def sqlite_at(folder: Path, *, checksums: bool = True) -> Open:
    return lambda: open_sqlite(folder / "penstock.db", checksums=checksums)


def postgres_at(url: str) -> Open:
    # One writer, as with SQLite: concurrent writers have tests of their own.
    return lambda: open_postgres(url, lanes=1)


class RenewableDatabase:
    """A database that is emptied for every test, which takes a tenth of creating another."""

    def __init__(self, url: str) -> None:
        self.url = url
        migrate(url)
        self._run(_REMEMBER)

    def renew(self) -> str:
        self._run(_RENEW)
        return self.url

    def _run(self, statement: str) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute(statement.encode())


# A copy of every table as the migrations left it.
_REMEMBER = """
CREATE SCHEMA pristine;
DO $$
DECLARE
  name text;
BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
    EXECUTE format('CREATE TABLE pristine.%I AS TABLE public.%I', name, name);
  END LOOP;
END $$
"""

_RENEW = """
DO $$
DECLARE
  name text;
BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
    IF to_regclass('pristine.' || name) IS NULL THEN
      EXECUTE format('DROP TABLE public.%I', name);
    ELSE
      EXECUTE format('DELETE FROM public.%I', name);
      EXECUTE format('INSERT INTO public.%I SELECT * FROM pristine.%I', name, name);
    END IF;
  END LOOP;
END $$
"""
