"""Samples of an operation: the same call in Python, and an answer as its schema describes it."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.edge.native.docs.curl import url_of
from penstock.edge.native.openapi.schemas import REF

Schema = dict[str, Any]

_MAX_DEPTH = 4
_TEXTS = {
    "date-time": "2031-01-01T09:00:00.000Z",
    "uuid": "0190b5c2-7d1e-7a3b-9c4d-5e6f708192a3",
}


def python(method: str, path: str, operation: dict[str, Any], *, with_key: bool) -> str:
    """A call with httpx."""
    url, variables = url_of(path, operation)
    lines = ["import httpx", ""]
    lines += [f'{name.lower()} = "…"' for name in variables]
    arguments = [f'f"{url}"' if variables else f'"{url}"']
    example = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    if example.get("example") is not None:
        arguments.append(f"json={example['example']!r}".replace("'$", "'…").replace("\n", " "))
    if with_key and "security" in operation:
        lines.append('key = "pk_…"')
        arguments.append('headers={"authorization": f"Bearer {key}"}')
    call = f"httpx.request({method!r}, " + ", ".join(arguments) + ")"
    return "\n".join([*lines, f"response = {call}", "response.raise_for_status()"])


def answer(operation: dict[str, Any], schemas: dict[str, Schema]) -> str | None:
    """An answer of the first success status; None if it has no JSON."""
    good = next(of for status, of in operation["responses"].items() if status < "400")
    content = good.get("content", {}).get("application/json")
    if content is None:
        return None
    value = _value(content["schema"], schemas, "", 0)
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _value(schema: Schema, schemas: dict[str, Schema], name: str, depth: int) -> Any:
    if "$ref" in schema:
        schema = schemas[schema["$ref"].removeprefix(REF)]
    for many in ("anyOf", "oneOf"):
        if many in schema:
            return _value(schema[many][0], schemas, name, depth)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "string":
            return _TEXTS.get(schema.get("format", ""), _text(name, schema))
        case "integer":
            return max(schema.get("minimum", 0), 1)
        case "number":
            return 0.5
        case "boolean":
            return False
        case "null":
            return None
        case "array":
            inner = schema.get("items", {})
            return [] if depth >= _MAX_DEPTH else [_value(inner, schemas, name, depth + 1)]
        case "object":
            return _object(schema, schemas, depth)
    return {"any": "JSON"}


def _object(schema: Schema, schemas: dict[str, Schema], depth: int) -> Any:
    """With the fields that are always there."""
    needed = schema.get("required", ())
    fields = schema.get("properties", {}).items()
    return {name: _value(of, schemas, name, depth + 1) for name, of in fields if name in needed}


def _text(name: str, schema: Schema) -> str:
    return {"queue": "mail", "name": "mail", "version": "0.1.0"}.get(name, name or "text")
