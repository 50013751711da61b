"""Our queries as MariaDB's text, and its errors translated into ours.

Values are written into the text: several statements then share one packet, which MariaDB's prepared
statements cannot.  The SQL mode has no backslash escapes, so a quote is the only character of a
text that is written twice.

Besides `:name` a query has

    ::name      members of the parameter, which is a JSON list of numbers or texts
    :#name      lock slots of the members of such a list (see lock_slots)
    :^column    the values of a column that the SELECT before returned; a$b: of several
    <<each name: …>>    an arm of a UNION ALL for each member of the list, which is :each there

A query of several statements returns the rows of its SELECT, without columns called `found_…`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any
from zlib import crc32

import msgspec

from penstock.domain.errors import InvalidRequest, PenstockError, StoreUnavailable
from penstock.store.database import Collision, Row

SLOTS = 2048  # per purpose, as the migration has created them

_MAX_BYTES = 4 * 1024 * 1024  # in one insert; a server takes packets of at least 16 MB

# Skips quoted text.
_PARAM = re.compile(
    r"'(?:[^']|'')*'"
    r"|<<each (?P<list>\w+):(?P<arm>.*?)>>"
    r"|(?P<kind>::|:#|:\^|:)(?P<name>[a-z_][\w$]*)",
    re.DOTALL,
)
_VALUES = re.compile(r"VALUES\s*(\(.*?\))", re.DOTALL)

# Deadlock, lock wait; rows or tables that changed or were dropped meanwhile.
_COLLISIONS = frozenset({1020, 1146, 1205, 1213, 1412})
# The value does not fit its column, or has characters that it cannot store.
_INVALID = frozenset({1366, 1406})
_UNAVAILABLE = frozenset(
    {0, 1021, 1028, 1030, 1037, 1040, 1041, 1044, 1045, 1053, 1080, 1114, 1129, 1152, 1153, 1158}
    | {1159, 1160, 1161, 1180, 1203, 1226, 1290, 1317, 1792, 1836, 1877, 1927, 1969, 3024, 4031}
)
_CLIENT = range(2000, 2100)  # errors of the connection itself

Found = Mapping[str, Sequence[object]]
Part = Callable[[Mapping[str, Any], Found], str]


def error_for(number: int, text: str) -> Exception:
    """Our error for one of the server's."""
    if number in _COLLISIONS:
        return Collision(text)
    if number in _UNAVAILABLE or number in _CLIENT:
        return StoreUnavailable(f"MariaDB: {text}")
    if number in _INVALID:
        return InvalidRequest(f"MariaDB cannot store a value: {text}")
    return PenstockError(f"{text} ({number})")


class QueryTemplate(msgspec.Struct, frozen=True):
    """A statement as fixed text and functions that write one value each."""

    parts: tuple[str | Part, ...]

    def text(self, params: Mapping[str, Any], found: Found) -> bytes:
        return sendable(self.rendered(params, found))

    def rendered(self, params: Mapping[str, Any], found: Found) -> str:
        return "".join([p if isinstance(p, str) else p(params, found) for p in self.parts])

    @property
    def is_select(self) -> bool:
        return isinstance(self.parts[0], str) and self.parts[0].lstrip().startswith("SELECT")


@cache
def statements(text: str) -> tuple[QueryTemplate, ...]:
    """The statements of a query: most have one."""
    return tuple(_statement(part) for part in text.split(";\n") if part.strip())


@cache
def insert_head(text: str) -> tuple[str, str]:
    """The text of an insert of values before and behind its row."""
    match = _VALUES.search(text)
    if match is None:
        raise ValueError(f"not an insert of values: {text}")
    return text[: match.start(1)], text[match.end(1) :]


def insert_texts(text: str, rows: Iterable[Row]) -> list[bytes]:
    """Inserts of many rows, each small enough for one packet."""
    before, after = insert_head(text)
    texts: list[bytes] = []
    values: list[str] = []
    size = 0
    for row in rows:
        value = f"({', '.join([literal(v) for v in row])})"
        if values and size + 4 * len(value) > _MAX_BYTES:  # a character takes up to four bytes
            texts.append(sendable(f"{before}{', '.join(values)}{after}"))
            values, size = [], 0
        values.append(value)
        size += 4 * len(value)
    if values:
        texts.append(sendable(f"{before}{', '.join(values)}{after}"))
    return texts


def literal(value: object) -> str:
    if isinstance(value, str):
        return f"'{value.replace(chr(39), chr(39) * 2)}'" if "'" in value else f"'{value}'"
    return "NULL" if value is None else str(int(value))  # type: ignore[call-overload]


def members(text: str) -> str:
    """The members of a JSON list; NULL, which equals nothing, if it is empty."""
    if '"' not in text:
        return text[1:-1] or "NULL"
    return ", ".join(map(literal, msgspec.json.decode(text)))


def lock_slots(text: str) -> str:
    """The rows of lock_slot that stand for these names, or for pairs of a queue and a name.

    They are in ascending order, in which a range of the primary key is locked.
    """
    return ", ".join(map(str, sorted({slot_of(part) for part in msgspec.json.decode(text)})))


def slot_of(part: object) -> int:
    """Queues have their own number; the SQL of pairs computes the same."""
    if isinstance(part, int):
        return part % SLOTS
    name = f"{part[0]}/{part[1]}" if isinstance(part, list) else str(part)
    return crc32(name.encode()) % SLOTS


def sendable(text: str) -> bytes:
    """The text as the server takes it; raises InvalidRequest."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest("a text contains half a character (a lone surrogate)") from None


def _statement(text: str) -> QueryTemplate:
    parts: list[str | Part] = []
    start = 0
    for match in _PARAM.finditer(text):
        if match["name"] is not None:
            part = _part(match["kind"], match["name"])
        elif match["list"] is not None:
            part = _arms(match["list"], _statement(match["arm"]))
        else:
            continue
        parts += [text[start : match.start()], part]
        start = match.end()
    return QueryTemplate((*parts, text[start:]))


def _part(kind: str, name: str) -> Part:
    match kind:
        case "::":
            return lambda params, _: members(params[name])
        case ":#":
            return lambda params, _: lock_slots(params[name]) or "NULL"
        case ":^" if "$" in name:
            columns = name.split("$")
            return lambda _, found: ", ".join(
                f"({', '.join(map(literal, row))})"
                for row in zip(*(found[column] for column in columns), strict=True)
            )
        case ":^":
            return lambda _, found: ", ".join(map(literal, found[name]))
        case _:
            return lambda params, _: literal(params[name])


def _arms(name: str, arm: QueryTemplate) -> Part:
    return lambda params, found: " UNION ALL ".join(
        arm.rendered({**params, "each": member}, found)
        for member in msgspec.json.decode(params[name])
    )
