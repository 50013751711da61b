"""Our queries in PostgreSQL's protocol, and its errors translated into ours.

Parameters are `$1`, `$2`, …; values are sent as text without types: the server knows the columns.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import msgspec

from penstock.domain.errors import InvalidRequest, PenstockError, StoreUnavailable
from penstock.store.database import Collision

Params = list[bytes | None]

_MAX_ROWS = 64  # per statement; there is a statement for each power of two up to this
_MAX_BYTES = 16 * 1024 * 1024  # in one statement; the server takes up to 1 GB

# Skips quoted text; a name after a colon is a parameter.
_PARAM = re.compile(r"'(?:[^']|'')*'|:([a-z_]\w*)")
_VALUES = re.compile(r"VALUES\s*(\(.*?\))", re.DOTALL)

# SQLSTATEs and classes of them.
_COLLISIONS = ("40001", "40P01")
_DROPPED = "42P01"  # a day's table, dropped after the list of days was read
_STORAGE = ("08", "53", "54", "57", "58", "F0", "XX")
_UNAVAILABLE = ("", "25006", "25P03", "55P03", "55006")


class Statement(msgspec.Struct, frozen=True):
    text: bytes
    names: tuple[str, ...]


def error_for(sqlstate: str, text: str) -> Exception:
    """Our error for one of the server's."""
    if sqlstate in _COLLISIONS or sqlstate == _DROPPED:
        return Collision(text)
    if sqlstate in _UNAVAILABLE or sqlstate.startswith(_STORAGE):
        return StoreUnavailable(text)
    return PenstockError(text)


@cache
def statement(text: str) -> Statement:
    """The statement with `$1`, `$2`, … in place of `:names`, and the names in that order."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return match[0]
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return Statement(_PARAM.sub(number, text).encode(), tuple(names))


def parts(text: str, values: list[Params]) -> Iterator[tuple[bytes, Params]]:
    """Statements with many rows each; few different sizes, as each size is prepared once."""
    start = 0
    while start < len(values):
        size = min(_MAX_ROWS, 1 << (len(values) - start).bit_length() - 1)
        flat = [value for row in values[start : start + size] for value in row]
        while size > 1 and sum(map(len, filter(None, flat))) > _MAX_BYTES:
            size //= 2
            flat = flat[: len(flat) // 2]
        yield many_rows(text, size), flat
        start += size


@cache
def many_rows(text: str, count: int) -> bytes:
    """Turn an insert of one row into an insert of several."""
    match = _VALUES.search(text)
    if match is None:
        raise ValueError(f"not an insert of values: {text}")
    row, number = match[1], itertools.count(1)
    many = ", ".join(_PARAM.sub(lambda _: f"${next(number)}", row) for _ in range(count))
    return (text[: match.start(1)] + many + text[match.end(1) :]).encode()


def encode(values: Sequence[Any]) -> Params:
    return [
        None if value is None else sendable(value) if isinstance(value, str) else b"%d" % value
        for value in values
    ]


def sendable(value: str) -> bytes:
    """The text as the server takes it; raises InvalidRequest."""
    # libpq ends texts at the first NUL, so the rest would silently be lost.
    if "\0" in value:
        raise InvalidRequest("PostgreSQL cannot store texts with a NUL character")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise InvalidRequest("a text contains half a character (a lone surrogate)") from None
