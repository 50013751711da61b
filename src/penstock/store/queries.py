"""SQL by name.  `common/` has the queries of all backends, a dialect folder overrides them.

Placeholders in the text:
    {columns}      the columns of a message, in the order of its fields; likewise {flow_columns},
                   {member_columns}; {column_params}: a parameter for each
    SET {leased}   the changes that a claim makes, as in domain/message/lifecycle.py
    {leased_columns}  the columns of a message as they are after these changes
    IN {list:NAME} one of the integers in the parameter NAME, a JSON list
    {json:COLUMN}  a column that holds JSON, for ->>
    {day} …        a number that is part of a table's name
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from itertools import chain
from typing import Any

import msgspec

from penstock.domain.flow.flow import Flow
from penstock.domain.flow.member import Member
from penstock.domain.message.lifecycle import Message
from penstock.store.mariadb.dialect import mariadb_text

# Rows per insert; below the smallest there is a statement for each number of rows.  Longer
# statements do not pay off: apsw caches none above 16 KB, and preparing one takes longer than
# running it.
_CHUNKS = (128, 64)

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n?", re.MULTILINE)
_LIST = re.compile(r"IN \{list:(\w+)\}")
_JSON = re.compile(r"\{json:([\w.]+)\}")
_PARAM = re.compile(r":(\w+)")
_VALUES = re.compile(r"VALUES\s*(\(.*?\))", re.DOTALL)

# `group` is a reserved word in SQL; a released column is not renamed.
_COLUMNS = {"group": "group_key", "fair_position": "turn"}
MESSAGE_COLUMNS = tuple(_COLUMNS.get(name, name) for name in Message.__struct_fields__)

_CHANGES_OF_CLAIM = {
    "state": "'leased'",
    "due_at": ":due_at",
    "attempts": "attempts + 1",
    "lease_no": "lease_no + 1",
    "leased_at": ":now",
    "leased_by": ":claimed_by",
    "first_leased_at": "coalesce(first_leased_at, :now)",
    "started_at": "NULL",
    "progress": "NULL",
}
_LEASED = ", ".join(f"{column} = {value}" for column, value in _CHANGES_OF_CLAIM.items())
_LEASED_COLUMNS = ", ".join(
    f"{_CHANGES_OF_CLAIM[column]} AS {column}" if column in _CHANGES_OF_CLAIM else column
    for column in MESSAGE_COLUMNS
)

_RECORDS: dict[str, type[msgspec.Struct]] = {"{flow_columns}": Flow, "{member_columns}": Member}

_LISTS = {
    "mariadb": r"IN (::\1)",
    "sqlite": r"IN (SELECT value FROM json_each(:\1))",
    # An array: its members are always looked up in an index one by one.
    "postgres": r"= ANY (CAST(translate(:\1, '[]', '{}') AS bigint[]))",
}
_JSONS = {"mariadb": r"\1", "sqlite": r"\1", "postgres": r"CAST(\1 AS json)"}


class Queries:
    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self._texts = _texts_of(dialect)
        self._filled: dict[tuple[str, tuple[object, ...]], str] = {}

    def text(self, name: str, **fill: object) -> str:
        if not fill:
            return self._texts[name]
        key = (name, tuple(fill.values()))
        found = self._filled.get(key)
        if found is None:
            found = self._texts[name]
            for mark, value in fill.items():
                found = found.replace("{" + mark + "}", str(value))
            self._filled[key] = found
        return found

    def names(self) -> list[str]:
        return sorted(self._texts)


@cache
def queries_of(dialect: str) -> Queries:
    """One shared instance per dialect, for connections that serve a single transaction."""
    return Queries(dialect)


def insert_parts(text: str, rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, list[Any]]]:
    """Inserts of many rows with their values, by position.

    They are few, because each execution releases the GIL once.
    """
    start = 0
    while start < len(rows):
        part = rows[start : start + _chunk(len(rows) - start)]
        yield _many_rows(text, len(part)), list(chain.from_iterable(part))
        start += len(part)


@cache
def _texts_of(dialect: str) -> dict[str, str]:
    """All queries of a dialect, shared by its connections: they take milliseconds to prepare."""
    columns = ", ".join(MESSAGE_COLUMNS)
    params = ", ".join(f":{column}" for column in MESSAGE_COLUMNS)
    texts = _load("common") | _load(dialect)
    for name, text in texts.items():
        text = _JSON.sub(_JSONS[dialect], _LIST.sub(_LISTS[dialect], text))
        text = (
            text.replace("{column_params}", params)
            .replace("{columns}", columns)
            .replace("{leased}", _LEASED)
            .replace("{leased_columns}", _LEASED_COLUMNS)
        )
        for mark, record in _RECORDS.items():
            text = text.replace(mark, ", ".join(record.__struct_fields__))
        texts[name] = mariadb_text(text) if dialect == "mariadb" else text
    return texts


@cache
def _load(folder: str) -> dict[str, str]:
    """{"messages.claim": text} for every named query of a folder."""
    texts: dict[str, str] = {}
    for file in resources.files("penstock.store").joinpath("sql", folder).iterdir():
        if not file.name.endswith(".sql"):
            continue
        _, *parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            noun = file.name.removesuffix(".sql")
            texts[f"{noun}.{name}"] = _COMMENT.sub("", text).strip().rstrip(";")
    return texts


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
