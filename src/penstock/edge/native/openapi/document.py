"""The whole document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock import __version__
from penstock.edge.native.openapi.operations import CHAPTERS, operation
from penstock.edge.native.openapi.schemas import components
from penstock.edge.server.errors import ErrorAnswer
from penstock.edge.server.router import Route

VERSION = "3.1.0"

_ABOUT = """\
A durable work queue: send messages, claim them under a lease, complete them.

Everything speaks JSON. Instants are ISO 8601 texts in UTC with milliseconds; where a request \
takes one, it may also be an integer of milliseconds since the epoch. Durations are integers and \
end in `_ms`. Unknown fields and parameters are refused.

Every error has one shape, `{"error": {"code": …, "message": …}}`, and a code that does not \
change. An unknown path is answered with 404 `not_found`, a method that a path does not take with \
405 `method_not_allowed`.\
"""

_KEY = """\
An API key: `Authorization: Bearer pk_…`. It has roles (produce, consume, operate, read) and may \
be for some queues only. While the server has no keys, it asks for none and serves its own machine \
only.\
"""


def document(routes: Iterable[Route]) -> dict[str, Any]:
    native = [route for route in routes if route.is_native]
    paths: dict[str, dict[str, Any]] = {}
    for route in native:
        paths.setdefault(route.path, {})[route.method.lower()] = operation(route)
    types: set[Any] = {
        kind for route in native for kind in (route.takes, route.gives) if kind is not None
    }
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
            "schemas": components([*types, ErrorAnswer]),
            "securitySchemes": {
                "apiKey": {"type": "http", "scheme": "bearer", "description": _KEY}
            },
        },
    }


def _reading_order() -> list[tuple[object, str]]:
    order = ("Queues", "Messages")
    return sorted(CHAPTERS, key=lambda c: order.index(c[1]) if c[1] in order else len(order))
