"""The tables that the pipeline computes from history."""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from penstock.domain.described import about
from penstock.domain.errors import InvalidRequest

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")

MAX_ROWS = 1_000
DELTA = "delta"  # a format of tables; the other one is parquet


class TableReadiness(StrEnum):
    READY = "ready"
    NO_READER = "no_reader"  # pyarrow is not installed
    NO_TABLES = "no_tables"  # nothing has been computed yet


class TableSummary(msgspec.Struct, frozen=True, kw_only=True):
    name: Annotated[str, about("The table's name.")]
    days: Annotated[int, about("How many days have rows.")]
    first_day: Annotated[str, about("The first day that has rows.")]
    last_day: Annotated[str, about("The last day that has rows.")]
    bytes: Annotated[int, about("The size of its files.")]


AsOf = int | datetime | None  # a version of a Delta table, an instant, or None for the latest


class TableVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a Delta table."""

    version: int
    committed_at: datetime
    operation: str


class TableRows(msgspec.Struct, frozen=True, kw_only=True):
    """Rows, the newest days first, each day in the order in which it was written."""

    columns: list[str]
    rows: list[list[Any]]
    is_cut: bool


def check_table(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidRequest("a table name has lower-case letters, digits and _")
    return name


def check_day(name: str, text: str) -> str:
    if not _DAY.fullmatch(text):
        raise InvalidRequest(f"{name} must be a day like 2031-12-24")
    return text
