"""One call of an operation, whichever way it came."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from penstock.api.operation import Instant, Operation
from penstock.domain.access.api_key import ANYONE, Caller
from penstock.ports.unit_of_work import Steps, Work

Body = TypeVar("Body")
Query = TypeVar("Query")


class Call(msgspec.Struct, Generic[Body, Query], frozen=True, kw_only=True):
    path: Mapping[str, str]
    body: Body
    query: Query
    caller: Caller = ANYONE
    only_new: bool = False  # a PUT must not change what exists (HTTP: If-None-Match: *)
    instant: Callable[[int], Instant]  # how answers hold instants: text for HTTP, else datetimes


class Reply(msgspec.Struct, Generic[Body], frozen=True):
    """An answer with one of the operation's other statuses of success."""

    answer: Body
    status: int


# Work for the store, several steps, or at once the answer that needs neither.
Handler = Callable[[Call[Any, Any]], Work[Any] | Steps[Any] | msgspec.Struct]
Handlers = Mapping[Operation[Any], Handler]
