"""Base classes of entities, and rows as records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from typing import Any, ClassVar, Generic, TypeVar, get_origin, get_type_hints

import msgspec

from penstock.store.database import Row, stored_value
from penstock.store.verbs.claims import Claims
from penstock.store.verbs.lock_order import LockOrder
from penstock.store.verbs.message_changes import MessageChanges
from penstock.store.verbs.transaction_state import TransactionState

T = TypeVar("T", bound=msgspec.Struct)


class SqlEntity:
    """The queries of one entity, within a transaction."""

    def __init__(self, transaction: TransactionState) -> None:
        self._transaction = transaction
        self._db = transaction.db


class MessageEntity(SqlEntity):
    """Queries and changes of messages."""

    def __init__(
        self, transaction: TransactionState, changes: MessageChanges, claims: Claims
    ) -> None:
        super().__init__(transaction)
        self._changes = changes
        self._claims = claims
        self._lock_order = LockOrder(transaction)


class SelectedEntity(SqlEntity, ABC, Generic[T]):
    """Records that one query selects, by conditions that have names of their own."""

    query: ClassVar[str]

    @abstractmethod
    def _record_of(self, row: Row) -> T: ...

    def _select(self, which: str, params: dict[str, Any]) -> list[T]:
        rows = self._db.rows(self.query, params, conditions=self._db.text(which))
        return list(map(self._record_of, rows))

    def _select_one(self, which: str, params: dict[str, Any]) -> T | None:
        found = self._select(which, params)
        return found[0] if found else None


def reader(record: type[T]) -> Callable[[Row], T]:
    """A function that turns a row into a record; its columns are in the order of the fields.

    It converts the texts of enums, the numbers of booleans, and JSON texts.
    """
    hints, names = get_type_hints(record), record.__struct_fields__
    casts = {name: cast for name in names if (cast := _cast(hints[name])) is not None}

    def read(row: Row) -> T:
        values = dict(zip(names, row, strict=True))
        for name, cast in casts.items():
            values[name] = cast(values[name])
        return record(**values)

    return read


def _cast(hint: Any) -> Callable[[Any], Any] | None:
    if get_origin(hint) in (tuple, dict):
        return msgspec.json.Decoder(hint).decode
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return lru_cache(maxsize=4_096)(msgspec.json.Decoder(hint).decode)
    return hint if isinstance(hint, type) and issubclass(hint, Enum | bool) else None


def params_of(record: msgspec.Struct, names: tuple[str, ...]) -> dict[str, Any]:
    """The named fields as parameters; the store saves enums by their values, booleans as 0 or 1."""
    return {name: stored_value(getattr(record, name)) for name in names}
