"""Where a SQLite store can be promoted to: how each database takes many rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from penstock.store.database import Database, Row
from penstock.store.partitions import Partitions

_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


class PromoteTarget(Protocol):
    name: str

    @property
    def db(self) -> Database: ...

    def prepare(self, days: Iterable[int]) -> None:
        """Before the transaction: what its schema needs for the days of the source."""
        ...

    def ensure(self, days: Iterable[int]) -> None:
        """The same inside of it."""
        ...

    def copy(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None: ...

    def continue_numbers(self, table: str) -> None:
        """Number new rows after the copied ones."""
        ...

    def close(self) -> None: ...


def open_target(url: str) -> PromoteTarget:
    if url.startswith(("mysql://", "mariadb://")):
        return MariadbTarget(url)
    return PostgresTarget(url)


class PostgresTarget:
    name = "PostgreSQL"

    def __init__(self, url: str) -> None:
        from penstock.store.postgres.connection import PostgresDatabase
        from penstock.store.postgres.url import parse

        self.db = PostgresDatabase(parse(url))

    def prepare(self, days: Iterable[int]) -> None:
        """Nothing to do: PostgreSQL changes its schema in the transaction."""

    def ensure(self, days: Iterable[int]) -> None:
        for day in days:
            Partitions(self.db).ensure(day)

    def copy(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        self.db.copy("promote.copy", _lines(rows), table=table, names=", ".join(columns))

    def continue_numbers(self, table: str) -> None:
        for column, sequence in self.db.rows("promote.numbered", {"table_name": table}):
            self.db.post(
                "promote.continue_after", {"sequence_name": sequence}, table=table, column=column
            )

    def close(self) -> None:
        self.db.close()


class MariadbTarget:
    name = "MariaDB"

    def __init__(self, url: str) -> None:
        from penstock.store.mariadb.connection import MariadbDatabase
        from penstock.store.mariadb.store import make_day
        from penstock.store.mariadb.url import parse

        self._url = parse(url)
        self._make_day = make_day
        self.db = MariadbDatabase(self._url, guarded=False)

    def prepare(self, days: Iterable[int]) -> None:
        """MariaDB commits what changes the schema: if the copy fails, empty tables are left."""
        for day in days:
            self._make_day(self._url, day)

    def ensure(self, days: Iterable[int]) -> None:
        """Nothing to do: the tables are there."""

    def copy(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        quoted = ", ".join(f'"{column}"' for column in columns)
        params = ", ".join(f":{column}" for column in columns)
        self.db.insert("promote.add", rows, table=f'"{table}"', names=quoted, params=params)

    def continue_numbers(self, table: str) -> None:
        """Nothing to do: MariaDB continues after the largest number of a table."""

    def close(self) -> None:
        self.db.close()


def _lines(rows: Sequence[Row]) -> Iterator[bytes]:
    for row in rows:
        yield ("\t".join(map(_field, row)) + "\n").encode()


def _field(value: Any) -> str:
    """A value in the text format of COPY."""
    if value is None:
        return "\\N"
    return value.translate(_ESCAPES) if isinstance(value, str) else str(value)
