"""The OpenAPI document of a list of operations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.api.operation import Operation
from penstock.edge.native.openapi.operations import CHAPTERS, document_operation
from penstock.edge.native.openapi.schemas import components
from penstock.edge.server.errors import ErrorAnswer
from penstock.version import __version__

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
