"""A call of an operation, over HTTP or in process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from penstock.api.operation import Operation, ToInstant
from penstock.domain.access.api_key import ANYONE, Caller, Role, allow, is_limited
from penstock.domain.errors import InvalidRequest
from penstock.ports.unit_of_work import Steps, Work

Body = TypeVar("Body")
Query = TypeVar("Query")


class Call(msgspec.Struct, Generic[Body, Query], frozen=True, kw_only=True):
    path: Mapping[str, str]
    body: Body
    query: Query
    caller: Caller = ANYONE
    origin: str = ""  # the address that the call came from; empty: unknown, or in process
    only_new: bool = False  # a PUT must not replace an existing resource (HTTP: If-None-Match: *)
    instant: ToInstant  # renders instants: text for HTTP, datetimes in process
    json_value: Callable[[str], Any]  # renders stored JSON: raw for HTTP, decoded in process


class StatusAnswer(msgspec.Struct, Generic[Body], frozen=True):
    """An answer whose success status is not the operation's first one."""

    answer: Body
    status: int


def put_answer(answer: Body, is_new: bool) -> Body | StatusAnswer[Body]:
    """The answer of a PUT: 201 for what is new, otherwise 200."""
    return answer if is_new else StatusAnswer(answer, 200)


def allow_search(caller: Caller, queue: str | None, role: Role) -> None:
    """Check access to a search in one queue or, without a name, in all of them."""
    if is_limited(caller):
        if queue is None:
            raise InvalidRequest("this key is for some queues only: name one with ?queue=")
        allow(caller, role, queue)


# A handler returns work for the store, a sequence of steps, or the answer itself.
Handler = Callable[[Call[Any, Any]], Work[Any] | Steps[Any] | msgspec.Struct]
Handlers = Mapping[Operation[Any], Handler]
