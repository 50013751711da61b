"""The OpenAPI document of a list of operations: their parameters, bodies and responses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from penstock.api.operation import PATH_PARAMETERS, Operation
from penstock.domain import errors
from penstock.domain.errors import PenstockError
from penstock.edge.native.openapi.schemas import components, enums_of, properties, ref
from penstock.edge.server.errors import STATUS, ErrorAnswer
from penstock.version import __version__

Part = dict[str, Any]

_IN_PATH = re.compile(r"{(\w+)}")

# An operation belongs to the first chapter whose pattern its path matches.
CHAPTERS = (
    (re.compile(r"/claims$|^/v1/leases/"), "Claims and leases"),
    (re.compile(r"/messages(/|$)|^/v1/errors"), "Messages"),
    (re.compile(r"^/v1/signals"), "Signals"),
    (re.compile(r"^/v1/(queues|moves)"), "Queues"),
    (re.compile(r"^/v1/(workers|tasks)"), "Workers and tasks"),
    (re.compile(r"^/v1/recurring"), "Recurring work"),
    (re.compile(r"^/v1/notifications"), "Notifications"),
    (re.compile(r"^/v1/topics"), "Topics and events"),
    (re.compile(r"^/v1/(deliveries|routes|circuits|breaker)"), "Pushing"),
    (re.compile(r"^/v1/scaling"), "Autoscaling"),
    (re.compile(r""), "History, stats, health"),
)


def document_operation(operation: Operation[Any]) -> Part:
    described: Part = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [chapter(operation)],
        "parameters": [*_path_parameters(operation), *_query_parameters(operation)],
        "responses": _responses(operation),
    }
    if operation.request is not None:
        described["requestBody"] = _body(operation)
    if operation.role is not None:
        described["security"] = [{"apiKey": [operation.role.value]}]
        described["x-queues"] = operation.scope.value
    return described


def chapter(operation: Operation[Any]) -> str:
    return next(name for pattern, name in CHAPTERS if pattern.search(operation.path))


def errors_of(operation: Operation[Any]) -> list[type[PenstockError]]:
    """The errors it declares, and those implied by its path, body and role."""
    found: list[type[PenstockError]] = [*operation.errors, errors.Forbidden, errors.PenstockError]
    names = _IN_PATH.findall(operation.path)
    if operation.method != "PUT":
        missing = (PATH_PARAMETERS[name].error for name in names)
        found += [error for error in missing if error is not None]
    if names or operation.query or operation.request:
        found.append(errors.InvalidRequest)
    if operation.method != "GET":
        found += [errors.TooLarge, errors.UnsupportedMediaType]
    if operation.role is not None:
        found += [errors.Unauthenticated, errors.StoreUnavailable, errors.StoreDamaged]
        found.append(errors.ShuttingDown)
    return found


def _path_parameters(operation: Operation[Any]) -> Iterable[Part]:
    for name in _IN_PATH.findall(operation.path):
        declared = PATH_PARAMETERS[name]
        parameter: Part = {
            "name": name,
            "in": "path",
            "required": True,
            "description": declared.text,
            "schema": declared.schema,
        }
        if declared.example:
            parameter["example"] = declared.example
        yield parameter


def _query_parameters(operation: Operation[Any]) -> Iterable[Part]:
    if operation.query is None:
        return
    for name, schema in properties(operation.query).items():
        parameter: Part = {"name": name, "in": "query", "description": schema.pop("description")}
        schema = parameter["schema"] = _without_null(schema)
        if examples := schema.pop("examples", None):
            [parameter["example"]] = examples
        yield parameter


def _without_null(schema: Part) -> Part:
    """Remove null: a parameter is omitted, never null."""
    if schema.get("default", ...) is None:
        del schema["default"]
    choices = [choice for choice in schema.pop("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) < 2:
        return schema | dict(*choices)
    return schema | {"anyOf": choices}


def _body(operation: Operation[Any]) -> Part:
    assert operation.request is not None
    media: Part = {"schema": ref(operation.request)}
    if operation.example is not None:
        media["example"] = operation.example
    # The body is optional if every field has a default.
    required = _needs_fields(operation.request)
    return {"required": required, "content": {"application/json": media}}


def _needs_fields(kind: Any) -> bool:
    optional = len(kind.__struct_defaults__)
    return len(kind.__struct_fields__) > optional


def _responses(operation: Operation[Any]) -> Part:
    described: Part = {}
    for status in (operation.status, *operation.also):
        described[str(status)] = _success(operation, status)
    by_status: dict[int, list[str]] = {}
    for error in errors_of(operation):
        by_status.setdefault(STATUS[error], []).append(error.code)
    for status, codes in sorted(by_status.items()):
        texts = ", ".join(f"`{code}`" for code in sorted(set(codes)))
        schema = ref(ErrorAnswer)
        content = {"application/json": {"schema": schema}}
        described[str(status)] = {"description": texts, "content": content}
    return described


def _success(operation: Operation[Any], status: int) -> Part:
    described: Part = {"description": HTTPStatus(status).phrase}
    if operation.answer is not None:
        described["content"] = {operation.media: {"schema": ref(operation.answer)}}
    elif status != HTTPStatus.NO_CONTENT:
        kind = "object" if operation.media == "application/json" else "string"
        described["content"] = {operation.media: {"schema": {"type": kind}}}
    return described


VERSION = "3.1.0"

_ABOUT = """\
A durable work queue: send messages, claim them under a lease, complete them.

Requests and responses are JSON. Instants are ISO 8601 strings in UTC with milliseconds; requests \
may also give them as integers, in milliseconds since the epoch. Durations are integers in \
milliseconds, and their names end in `_ms`. Requests with unknown fields or parameters are \
rejected. Booleans in a query string are `true` or `false`.

Errors have the form `{"error": {"code": …, "message": …}}`. Codes are stable. An unknown path \
returns 404 `not_found`; a method that the path does not support returns 405 \
`method_not_allowed`.\
"""

_KEY = """\
An API key, sent as `Authorization: Bearer pk_…`. A key has roles (produce, consume, operate, \
read) and may be restricted to some queues. As long as no key exists, the server requires none \
and accepts connections from its own machine only.\
"""


def document(operations: Iterable[Operation[Any]]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    types: set[Any] = {ErrorAnswer}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = document_operation(
            operation
        )
        types |= {kind for kind in (operation.request, operation.answer) if kind is not None}
        types |= set() if operation.query is None else enums_of(operation.query)
    return {
        "openapi": VERSION,
        "info": {
            "title": "Penstock",
            "version": __version__,
            "description": _ABOUT,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name} for _, name in _reading_order()],
        "paths": paths,
        "components": {
            "schemas": components(types),
            "securitySchemes": {
                "apiKey": {"type": "http", "scheme": "bearer", "description": _KEY}
            },
        },
    }


def _reading_order() -> list[tuple[object, str]]:
    order = ("Queues", "Messages")
    return sorted(CHAPTERS, key=lambda c: order.index(c[1]) if c[1] in order else len(order))
