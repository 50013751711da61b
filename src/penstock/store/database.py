"""One connection to one backend, used by one thread at a time.  Queries go by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from penstock.domain.errors import StoreUnavailable

Row = tuple[Any, ...]


class Collision(Exception):
    """Two transactions got into each other's way.  Nothing was kept; once more may well work."""


class Overtaken(Collision):
    """What was about to be done, others have done meanwhile: look again, and at once.

    It does not count as trouble: each time somebody has got on with the work.
    """


class NotADatabase(StoreUnavailable):
    """The file is something else.  Refused when a store is opened; later it may be repaired."""


class Occupied(StoreUnavailable):
    """Somebody else has kept the store for too long.  The connection itself is as good as ever."""


class Answer(Protocol):
    def rows(self) -> list[Row]: ...


class Found:
    """Rows that are there already: nothing travels, so nothing is gained by waiting."""

    __slots__ = ("_rows",)

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def rows(self) -> list[Row]:
        return self._rows


class Database(Protocol):
    dialect: str
    is_shared: bool  # others write at the same time, so that what must not change has to be locked
    finds_deadlocks: bool  # notices when the thread that works here holds a lock it waits for

    @property
    def is_alive(self) -> bool:
        """False: the connection was cut off while nobody used it."""
        ...

    def text(self, name: str, **fill: object) -> str:
        """The text of a query, to be part of another."""
        ...

    def rows(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> list[Row]:
        """Run a query by name and return all its rows."""
        ...

    def ask(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> Answer:
        """Run a query whose rows are read later: several may share one round trip."""
        ...

    def post(self, name: str, params: dict[str, Any] | None = None, **fill: object) -> None:
        """Run a statement that nobody waits for; an error shows at the commit, or before."""
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

    def take_turn(self, *, wait: bool) -> bool:
        """Where only one can write: be that one until the end of the next transaction.

        False: somebody else is, and we were not to wait; True may also mean that `is_alive` is
        False now.  `begin` takes a turn by itself.
        """
        ...

    def give_turn_back(self) -> None: ...

    def begin(self, *, durable: bool) -> None:
        """Start a transaction; `durable`: its commit is on the disk before it returns."""
        ...

    def step_back(self, times: int) -> None:
        """After a collision, and outside of a transaction: let the others go first."""
        ...

    def be_patient(self) -> None:
        """What follows in this transaction may take minutes."""
        ...

    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...

    def abandon(self) -> None:
        """Close after a storage error, trusting nothing that this connection remembers."""
        ...
