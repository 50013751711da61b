"""Bind the operations of the contract to routes of the server: decode, call, encode.

A query string is decoded as strictly as JSON: no 1e1, no True.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterator
from enum import Enum
from functools import partial
from typing import Any

import msgspec
from msgspec import inspect

from penstock.api.operation import Operation
from penstock.domain.errors import InvalidRequest, PenstockError
from penstock.edge.instants import to_text
from penstock.edge.server import request as http
from penstock.edge.server.errors import error_response, unexpected
from penstock.edge.server.request import (
    Request,
    Respond,
    Response,
    decode,
    json_response,
    raw_json,
)
from penstock.edge.server.router import HttpRoute
from penstock.operations.call import Call, Handler, Handlers, StatusAnswer
from penstock.operations.paging import check_limit, limits_of
from penstock.ports.unit_of_work import Steps, Work, await_steps

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
        case inspect.EnumType(cls=values):
            return lambda text: _member(name, text, values)
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


def _member(name: str, text: str, values: type[Enum]) -> str:
    names = [str(value.value) for value in values]
    if text not in names:
        raise InvalidRequest(f"{name} must be one of {', '.join(names)}, not {text[:50]!r}")
    return text


def routes_of(handlers: Handlers) -> Iterator[HttpRoute]:
    for operation, handler in handlers.items():
        yield route_of(operation, _bound(operation, handler))


def route_of(
    operation: Operation[Any],
    handler: http.Handler,
    *,
    queue: str | None = None,
    order: int = 0,
) -> HttpRoute:
    """A route whose handler reads the request itself: hot paths, streams, plain text.

    `queue`: the queue of the request, if the path does not name one; `order`: see HttpRoute.
    """
    return HttpRoute(
        method=operation.method,
        path=operation.path,
        handler=handler,
        role=operation.role,
        scope=operation.scope,
        queue=queue,
        name=operation.name,
        order=order,
        operation=operation,
    )


def _bound(operation: Operation[Any], handler: Handler) -> Callable[..., Any]:
    body_of, query_of = _body_reader(operation), query_reader(operation)
    status, is_put = operation.status, operation.method == "PUT"

    def handle(request: Request, respond: Respond) -> Awaitable[Response] | None:
        call = Call(
            path=request.params,
            body=body_of(request),
            query=query_of(request),
            caller=request.caller,
            origin=request.client,
            only_new=is_put and request.headers.get(b"if-none-match") == b"*",
            instant=to_text,  # type: ignore[arg-type]  # see api/operation.py: Instant
            json_value=raw_json,
        )
        work = handler(call)
        if isinstance(work, Generator):
            return _respond_later(work, status)
        if isinstance(work, Work):
            # No task: one per request would cost as much as the request.
            work.then(lambda answer: respond(_response(answer, status)))
        else:
            respond(_response(work, status))
        return None

    return handle


async def _respond_later(steps: Steps[Any], status: int) -> Response:
    return _response(await await_steps(steps), status)


def _response(answer: Any, status: int) -> Response:
    if isinstance(answer, PenstockError):
        return error_response(answer)
    if isinstance(answer, Exception):
        return unexpected(answer)
    if isinstance(answer, StatusAnswer):
        answer, status = answer.answer, answer.status
    return Response(status) if answer is None else json_response(answer, status)


def _body_reader(operation: Operation[Any]) -> Callable[[Request], Any]:
    if operation.request is None:
        return lambda request: None
    kind = dict[str, Any] if operation.is_partial else operation.request
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)
    return lambda request: decode(decoder, request.body)
