"""One route as an OpenAPI operation: its parameters, its body, and everything it can answer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import msgspec

from penstock.domain import errors
from penstock.domain.errors import PenstockError
from penstock.edge.native.openapi.meanings import PARAMETERS
from penstock.edge.native.openapi.schemas import properties, ref
from penstock.edge.server.errors import STATUS, ErrorAnswer
from penstock.edge.server.router import Route

Part = dict[str, Any]

_PYTHON = {"string": str, "integer": int, "boolean": bool}
_IN_PATH = re.compile(r"{(\w+)}")

# Which chapter an operation belongs to: the first pattern that fits its path.
CHAPTERS = (
    (re.compile(r"/claims$|^/v1/leases/"), "Claims and leases"),
    (re.compile(r"/messages(/|$)"), "Messages"),
    (re.compile(r"^/v1/(queues|moves)"), "Queues"),
    (re.compile(r"^/v1/(workers|tasks)"), "Workers and tasks"),
    (re.compile(r"^/v1/recurring"), "Recurring work"),
    (re.compile(r"^/v1/notifications"), "Notifications"),
    (re.compile(r"^/v1/topics"), "Topics and events"),
    (re.compile(r"^/v1/(deliveries|routes|circuits|breaker)"), "Pushing"),
    (re.compile(r"^/v1/scaling"), "Autoscaling"),
    (re.compile(r""), "History, stats, health"),
)


def operation(route: Route) -> Part:
    told: Part = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [chapter(route)],
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": _responses(route),
    }
    if route.takes is not None:
        told["requestBody"] = _body(route)
    if route.role is not None:
        told["security"] = [{"apiKey": [route.role.value]}]
        told["x-queues"] = route.scope.value
    return told


def chapter(route: Route) -> str:
    return next(name for pattern, name in CHAPTERS if pattern.search(route.path))


def refusals(route: Route) -> list[type[PenstockError]]:
    """Its own, and those that its path, its body and its role entail."""
    found: list[type[PenstockError]] = [*route.refuses, errors.Forbidden, errors.PenstockError]
    names = _IN_PATH.findall(route.path)
    if "queue" in names and route.method != "PUT":
        found.append(errors.QueueNotFound)
    if "id" in names:
        found.append(errors.MessageNotFound)
    if "move" in names:
        found.append(errors.MoveNotFound)
    if "schedule" in names and route.method != "PUT":
        found.append(errors.ScheduleNotFound)
    if "receipt" in names:
        found.append(errors.LeaseLost)
    if names or route.query or route.takes:
        found.append(errors.InvalidRequest)
    if route.method != "GET":
        found += [errors.TooLarge, errors.UnsupportedMediaType]
    if route.role is not None:
        found += [errors.Unauthenticated, errors.StoreUnavailable, errors.StoreDamaged]
        found.append(errors.ShuttingDown)
    return found


def _path_parameters(route: Route) -> Iterable[Part]:
    for name in _IN_PATH.findall(route.path):
        yield _parameter(name) | {"in": "path", "required": True}


def _query_parameters(route: Route) -> Iterable[Part]:
    if route.operation is None:
        for name in route.query:
            yield _parameter(name) | {"in": "query"}
    elif route.operation.query is not None:
        for name, schema in properties(route.operation.query).items():
            parameter: Part = {"name": name, "in": "query"}
            parameter["description"] = schema.pop("description")
            schema = parameter["schema"] = _without_null(schema)
            if examples := schema.pop("examples", None):
                [parameter["example"]] = examples
            yield parameter


def _without_null(schema: Part) -> Part:
    """A parameter is left out, never null."""
    if schema.get("default", ...) is None:
        del schema["default"]
    choices = [choice for choice in schema.pop("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) < 2:
        return schema | dict(*choices)
    return schema | {"anyOf": choices}


def _parameter(name: str) -> Part:
    meaning, schema, example = PARAMETERS[name]
    told = {"name": name, "description": meaning, "schema": schema}
    if example:
        told["example"] = msgspec.convert(example, _PYTHON[schema["type"]], strict=False)
    return told


def _body(route: Route) -> Part:
    assert route.takes is not None
    media: Part = {"schema": ref(route.takes)}
    if route.example is not None:
        media["example"] = route.example
    # Where every field has a default, a body may be left out.
    required = _needs_fields(route.takes)
    return {"required": required, "content": {"application/json": media}}


def _needs_fields(kind: Any) -> bool:
    optional = len(kind.__struct_defaults__)
    return len(kind.__struct_fields__) > optional


def _responses(route: Route) -> Part:
    told: Part = {}
    for status in (route.status, *route.also):
        told[str(status)] = _success(route, status)
    by_status: dict[int, list[str]] = {}
    for refusal in refusals(route):
        by_status.setdefault(STATUS[refusal], []).append(refusal.code)
    for status, codes in sorted(by_status.items()):
        texts = ", ".join(f"`{code}`" for code in sorted(set(codes)))
        schema = ref(ErrorAnswer)
        content = {"application/json": {"schema": schema}}
        told[str(status)] = {"description": texts, "content": content}
    return told


def _success(route: Route, status: int) -> Part:
    told: Part = {"description": HTTPStatus(status).phrase}
    if route.gives is not None:
        told["content"] = {route.media: {"schema": ref(route.gives)}}
    elif status != HTTPStatus.NO_CONTENT:
        kind = "object" if route.media == "application/json" else "string"
        told["content"] = {route.media: {"schema": {"type": kind}}}
    return told
