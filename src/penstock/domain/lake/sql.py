"""A SQL statement on the lake and the computed tables: its limits and its result."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

from penstock.domain.described import about
from penstock.domain.errors import InvalidRequest

MAX_CHARS = 100_000  # of a statement


class SqlLimits(msgspec.Struct, frozen=True, kw_only=True):
    rows: int  # of the result; further rows are cut off
    bytes: int  # of the result, encoded as JSON; the same
    memory_bytes: int
    timeout_ms: int


class SqlColumn(msgspec.Struct, frozen=True):
    name: Annotated[str, about("The name of the column; several columns may have the same.")]
    type: Annotated[str, about("Its type, as DuckDB names it.")]


class SqlResult(msgspec.Struct, frozen=True, kw_only=True):
    columns: list[SqlColumn]
    rows: list[list[Any]]  # values of JSON
    is_cut: bool  # there are more rows


def check_statement(text: str) -> str:
    if not text.strip():
        raise InvalidRequest("the SQL statement is empty")
    if len(text) > MAX_CHARS:
        raise InvalidRequest(f"the SQL statement has {len(text)} characters; at most {MAX_CHARS}")
    return text


def unique_names(columns: Iterable[SqlColumn]) -> list[str]:
    """The names of the columns; those that repeat an earlier one get a number: n, n_2, n_3."""
    found: list[str] = []
    for column in columns:
        name, number = column.name, 1
        while name in found:
            number += 1
            name = f"{column.name}_{number}"
        found.append(name)
    return found
