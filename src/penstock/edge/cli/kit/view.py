"""Views of records for people: the columns of a table, or the lines of one record."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, NamedTuple

Value = Callable[[Any], object]


class Table(NamedTuple):
    columns: Iterable[str]
    rows: list[tuple[object, ...]]


class View:
    """Some fields of a record, in order.

    `columns` names them, separated by spaces; `field:title` renames one, and by default a title is
    the field's name without `is_` and `_at` (`started_at`: "started").  A field may be nested
    (`counts.ready`).  `computed` has the values of columns that are not fields.
    """

    def __init__(self, columns: str, **computed: Value) -> None:
        self._values: dict[str, Value] = {}
        for word in columns.split():
            field, _, title = word.partition(":")
            title = title or re.sub(r"^is_|^.*\.|_at$", "", field)
            self._values[title.replace("_", " ")] = computed.get(field) or _value_of(field)

    def __add__(self, other: View) -> View:
        both = View("")
        both._values = self._values | other._values
        return both

    def lines(self, record: object) -> list[tuple[str, object]]:
        return [(title, value(record)) for title, value in self._values.items()]

    def table(self, records: Iterable[object]) -> Table:
        rows = [tuple(value(record) for value in self._values.values()) for record in records]
        return Table(list(self._values), rows)


def _value_of(field: str) -> Value:
    attribute = attrgetter(field)
    return lambda record: record[field] if isinstance(record, dict) else attribute(record)
