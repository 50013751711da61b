"""SQL by name.  `common/` has the queries of both backends, a dialect folder overrides them.

Placeholders in the text:
    {columns}      the columns of a message, in the order of its fields
    SET {leased}   the changes that a claim makes, as in domain/message/lifecycle.py
    IN {list:NAME} one of the integers in the parameter NAME, a JSON list
    {json:COLUMN}  a column that holds JSON, for ->>
    {day} …        a number that is part of a table's name
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from penstock.domain.message.lifecycle import Message

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n?", re.MULTILINE)
_LIST = re.compile(r"IN \{list:(\w+)\}")
_JSON = re.compile(r"\{json:([\w.]+)\}")

# `group` is a reserved word in SQL; a released migration named the fair position.
_COLUMN_OF = {"group": "group_key", "fair_position": "turn"}
MESSAGE_COLUMNS = tuple(_COLUMN_OF.get(name, name) for name in Message.__struct_fields__)

_LEASED = (
    "state = 'leased', due_at = :due_at, attempts = attempts + 1, lease_no = lease_no + 1,"
    " leased_at = :now, leased_by = :claimed_by,"
    " first_leased_at = coalesce(first_leased_at, :now), started_at = NULL, progress = NULL"
)

_LISTS = {
    "sqlite": r"IN (SELECT value FROM json_each(:\1))",
    # An array: its members are always looked up in an index one by one.
    "postgres": r"= ANY (CAST(translate(:\1, '[]', '{}') AS bigint[]))",
}
_JSONS = {"sqlite": r"\1", "postgres": r"CAST(\1 AS json)"}


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


@cache
def _texts_of(dialect: str) -> dict[str, str]:
    """All queries of a dialect, shared by its connections: they take milliseconds to prepare."""
    columns = ", ".join(MESSAGE_COLUMNS)
    texts = _load("common") | _load(dialect)
    for name, text in texts.items():
        text = _JSON.sub(_JSONS[dialect], _LIST.sub(_LISTS[dialect], text))
        texts[name] = text.replace("{columns}", columns).replace("{leased}", _LEASED)
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
