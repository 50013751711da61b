"""Cursors, and limits of pages and batches: the same over HTTP and in process."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Protocol

import msgspec
from msgspec import inspect

from penstock.api.operation import QueryRecord
from penstock.domain.datetimes import read_instant
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import Limits


class PagedQuery(Protocol):
    limit: int
    cursor: str | None


def to_cursor(*place: int) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def next_cursor(found: Sequence[object], limit: int, *place: str) -> str | None:
    """The cursor after a full page, made of these fields of its last item."""
    if len(found) < limit:
        return None
    return to_cursor(*(getattr(found[-1], name) for name in place))


def from_cursor(text: str | None, size: int) -> tuple[int, ...] | None:
    """Decode a cursor; raises InvalidRequest for text that is not a cursor."""
    if not text:
        return None
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        place = msgspec.json.decode(raw, type=tuple[int, ...])
    except (binascii.Error, ValueError, msgspec.DecodeError, RecursionError):
        raise InvalidRequest("the cursor is not valid; use the `next` of a page") from None
    if len(place) != size or any(abs(number) > 2**62 for number in place):
        raise InvalidRequest("the cursor is not valid; use the `next` of a page")
    return place


def past_page(query: PagedQuery, begin: Any, end: Any) -> dict[str, Any]:
    """What all filters of the past have in common: the period, and the place of the page."""
    return {
        "from_at": read_instant("from", begin, default=0),
        "to_at": read_instant("to", end, default=2**62),
        "before": from_cursor(query.cursor, 2),
        "limit": query.limit,
    }


@cache
def limits_of(record: type[QueryRecord]) -> Mapping[str, int]:
    """The fields of a query that count from 1, each with its maximum."""
    info = inspect.type_info(record)
    assert isinstance(info, inspect.StructType)
    found: dict[str, int] = {}
    for field in info.fields:
        kind = field.type.type if isinstance(field.type, inspect.Metadata) else field.type
        if isinstance(kind, inspect.IntType) and kind.ge == 1 and kind.le is not None:
            found[field.name] = kind.le
    return found


def check_limit(name: str, number: int, most: int) -> int:
    if not 1 <= number <= most:
        raise InvalidRequest(f"{name} must be from 1 to {most}")
    return number


def check_batch(size: int, limits: Limits) -> None:
    if not 1 <= size <= limits.max_batch:
        raise InvalidRequest(f"a batch has 1 to {limits.max_batch} entries, not {size}")
