"""Decode the query string into the operation's record, as strictly as JSON: no 1e1, no True."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from msgspec import inspect

from penstock.api.operation import Operation
from penstock.domain.errors import InvalidRequest
from penstock.edge.server.request import Request
from penstock.operations.paging import check_limit, limits_of

_BOOLEANS = {"true": True, "false": False}


def query_reader(operation: Operation[Any]) -> Callable[[Request], Any]:
    record = operation.query
    if record is None:
        return lambda request: None
    info = inspect.type_info(record)
    assert isinstance(info, inspect.StructType)
    names = [field.encode_name for field in info.fields]
    readers = {field.encode_name: _reader(field.encode_name, field.type) for field in info.fields}
    readers |= {name: partial(_limit, name, most) for name, most in limits_of(record).items()}

    def read(request: Request) -> Any:
        values = {name: readers[name](text) for name, text in request.query(*names).items()}
        try:
            return msgspec.convert(values, record, strict=False)
        except msgspec.ValidationError as error:
            raise InvalidRequest(f"query: {error}") from None

    return read


def _reader(name: str, kind: inspect.Type) -> Callable[[str], Any]:
    match kind:
        case inspect.Metadata():
            return _reader(name, kind.type)
        case inspect.UnionType(types=(value, inspect.NoneType())):  # optional: left out, not null
            return _reader(name, value)
        case inspect.IntType():
            return lambda text: _integer(name, text)
        case inspect.BoolType():
            return lambda text: _boolean(name, text)
        case _:
            return lambda text: text


def _limit(name: str, most: int, text: str) -> int:
    is_short = text.isascii() and text.isdigit() and len(text) < 10
    return check_limit(name, int(text) if is_short else 0, most)


def _integer(name: str, text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise InvalidRequest(f"{name} must be a whole number, not {text[:50]!r}")
    return int(text)


def _boolean(name: str, text: str) -> bool:
    if text not in _BOOLEANS:
        raise InvalidRequest(f"{name} must be true or false, not {text[:50]!r}")
    return _BOOLEANS[text]
