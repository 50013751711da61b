"""Facts: immutable lines of history that are not about one message."""

from __future__ import annotations

import msgspec

from penstock.domain.limits import check_range


class Fact(msgspec.Struct, frozen=True):
    """Fields are in column order."""

    fact_no: int
    at: int
    kind: str  # "worker_lost"
    subject: str  # the id or name that it is about
    data: str  # JSON text


class FactFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which facts to return; `from_at <= at < to_at`, newest first."""

    kind: str | None = None
    subject: str | None = None
    from_at: int = 0
    to_at: int = 2**62
    before: tuple[int, int] | None = None  # cursor: (at, fact_no) of the last one seen
    limit: int = 100


def check_filter(wanted: FactFilter, *, max_limit: int) -> FactFilter:
    check_range("limit", wanted.limit, 1, max_limit)
    return wanted
