"""The bounds of a query's limits: the same over HTTP and in process."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from msgspec import inspect

from penstock.api.operation import QueryRecord
from penstock.domain.errors import InvalidRequest


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
