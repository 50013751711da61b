"""What the process of a statement is asked, and what it answers; each is one JSON document."""

from __future__ import annotations

import msgspec

from penstock.domain.lake.sql import SqlLimits, SqlResult


class SqlRequest(msgspec.Struct, frozen=True, kw_only=True):
    statement: str
    limits: SqlLimits
    lake: str  # folders
    tables: str


class SqlReply(msgspec.Struct, frozen=True, kw_only=True):
    """One of both."""

    result: SqlResult | None = None
    error: str | None = None
