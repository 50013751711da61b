"""Request and reply of the SQL process, one JSON document each."""

from __future__ import annotations

import msgspec

from penstock.domain.lake.sql import SqlLimits, SqlResult


class SqlRequest(msgspec.Struct, frozen=True, kw_only=True):
    statement: str
    limits: SqlLimits
    lake: str  # folders
    tables: str


class SqlReply(msgspec.Struct, frozen=True, kw_only=True):
    """Exactly one field is set."""

    result: SqlResult | None = None
    error: str | None = None
