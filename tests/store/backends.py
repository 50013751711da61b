"""Opening a fresh store of each backend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from penstock.ports.store import Store
from penstock.store.mariadb.store import open_mariadb
from penstock.store.postgres.store import migrate, open_postgres
from penstock.store.store import open_sqlite

BACKENDS = ("sqlite", "postgres")
EVERY_BACKEND = (*BACKENDS, "mariadb")
PLAIN = "sqlite, plain"  # without checksums: opened through Python's sqlite3

Open = Callable[[], Store]


@pytest.fixture(name="backend", params=EVERY_BACKEND)
def every_backend(request: pytest.FixtureRequest) -> str:
    """For tests of the contract: what is above the store runs on two."""
    return str(request.param)


def sqlite_at(folder: Path, *, checksums: bool = True) -> Open:
    return lambda: open_sqlite(folder / "penstock.db", checksums=checksums)


def postgres_at(url: str) -> Open:
    # One writer, as with SQLite: concurrent writers have tests of their own.
    return lambda: open_postgres(url, lanes=1)


def mariadb_at(url: str) -> Open:
    return lambda: open_mariadb(url, lanes=1)


class RenewableDatabase:
    """A database that is emptied for every test, which takes a tenth of creating another."""

    def __init__(self, url: str) -> None:
        self.url = url
        migrate(url)
        self._connect()
        self._connection.execute(_REMEMBER)

    def renew(self) -> str:
        try:
            self._connection.execute(_RENEW)
        except psycopg.OperationalError:  # a test has restarted the server
            self._connect()
            self._connection.execute(_RENEW)
        return self.url

    def close(self) -> None:
        self._connection.close()

    def _connect(self) -> None:
        """One connection for all tests: it keeps its plans for the statements of `renew`."""
        self._connection = psycopg.connect(self.url, autocommit=True)


# A copy of every table as the migrations left it, and a function that returns to it.
_REMEMBER = """
CREATE SCHEMA pristine;
DO $remember$
DECLARE
  name text;
  statements text := '';
BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
    EXECUTE format('CREATE TABLE pristine.%I AS TABLE public.%I', name, name);
    statements := statements || format('DELETE FROM public.%I;', name);
    statements := statements
      || format('INSERT INTO public.%I SELECT * FROM pristine.%I;', name, name);
  END LOOP;
  EXECUTE format(
    'CREATE FUNCTION pristine.renew() RETURNS void LANGUAGE plpgsql AS %L',
    'DECLARE name text; BEGIN '
    || 'FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = ''public'' '
    || 'AND to_regclass(''pristine.'' || quote_ident(tablename)) IS NULL LOOP '
    || 'EXECUTE format(''DROP TABLE public.%I'', name); END LOOP; '
    || statements || ' END'
  );
END $remember$
"""

_RENEW = "SELECT pristine.renew()"
