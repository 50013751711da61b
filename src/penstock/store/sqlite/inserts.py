"""Inserts of many rows in one statement, with parameters by position."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

from penstock.store.database import Row

# Rows per statement; below the smallest there is a statement for each number of rows.  Longer
# statements do not pay off: apsw caches none above 16 KB, and preparing one takes longer than
# running it.
_CHUNKS = (128, 64)

_PARAM = re.compile(r":(\w+)")
_VALUES = re.compile(r"VALUES\s*(\(.*?\))", re.DOTALL)


def parts(text: str, rows: Sequence[Row]) -> Iterator[tuple[str, list[Any]]]:
    """Statements and their values; few, because each execution releases the GIL once."""
    start = 0
    while start < len(rows):
        part = rows[start : start + _chunk(len(rows) - start)]
        yield _many_rows(text, len(part)), list(chain.from_iterable(part))
        start += len(part)


def _chunk(count: int) -> int:
    return next((chunk for chunk in _CHUNKS if chunk <= count), count)


@cache
def _many_rows(text: str, count: int) -> str:
    plain = _PARAM.sub("?", text)
    match = _VALUES.search(plain)
    if match is None:
        raise ValueError(f"not an insert of values: {text}")
    many = ", ".join([match[1]] * count)
    return plain[: match.start(1)] + many + plain[match.end(1) :]
