"""One connection to one backend, used by one thread at a time.  Queries go by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Row = tuple[Any, ...]


class Database(Protocol):
    dialect: str

    def text(self, name: str, **fill: object) -> str:
        """The text of a query, to be part of another."""
        ...

    def rows(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> list[Row]:
        """Run a query by name and return all its rows."""
        ...

    def run(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> int:
        """Run a statement by name and return how many rows it changed."""
        ...

    def insert(self, name: str, rows: Sequence[Row], **fill: object) -> list[Row]:
        """Insert rows, given in the order of the statement's parameters, in few statements."""
        ...

    def update(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Run one statement for each of the rows."""
        ...

    def script(self, text: str) -> None:
        """Run several statements, as a migration has them."""
        ...

    def begin(self, *, durable: bool) -> None:
        """Start a transaction; `durable`: its commit is on the disk before it returns."""
        ...

    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...

    def abandon(self) -> None:
        """Close after a storage error, trusting nothing that this connection remembers."""
        ...
