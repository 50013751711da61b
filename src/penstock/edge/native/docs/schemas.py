"""Schemas on the page: a type in a few words, and a table of its fields."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.edge.native.docs.markup import Html, el, inline, join, table
from penstock.edge.native.openapi.schemas import REF

Schema = dict[str, Any]

_FORMATS = {"date-time": "instant", "uuid": "UUID"}


def in_words(schema: Schema) -> Html:
    """Render a type, such as `list of Draft`, with a link to the schema of Draft."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(REF)
        return el("a", name, href=f"#schema-{name}")
    for many in ("anyOf", "oneOf"):
        if many in schema:
            return join(*map(in_words, schema[many]), by=" or ")
    if "enum" in schema:
        return join(*(el("code", str(value)) for value in schema["enum"]), by=" ")
    match schema.get("type"):
        case None:
            return join("any JSON value")
        case "array":
            return join("list of ", in_words(schema.get("items", {})))
        case "object" if "additionalProperties" in schema:
            return join("object of ", in_words(schema["additionalProperties"]))
        case kind:
            return join(_FORMATS.get(schema.get("format", ""), str(kind)))


def card(name: str, schema: Schema) -> Html:
    parts = [el("h3", name)]
    if "description" in schema:
        parts.append(el("p", inline(schema["description"])))
    if "properties" in schema:
        needed = schema.get("required", ())
        fields = schema["properties"].items()
        rows = [(_name(key, key in needed), in_words(of), _meaning(of)) for key, of in fields]
        parts.append(table(("field", "type", "meaning"), rows))
    else:
        parts.append(el("p", in_words(schema)))
    return el("section", *parts, class_="card", id=f"schema-{name}")


def _name(field: str, is_needed: bool) -> Html:
    mark = el("span", "required", class_="needed") if is_needed else ""
    return join(el("code", field), " ", mark)


def _meaning(schema: Schema) -> Html:
    parts = [inline(schema.get("description", ""))]
    default = schema.get("default")
    if default not in (None, [], {}):
        text = msgspec.json.format(msgspec.json.encode(default), indent=0).decode()
        parts.append(join("Default ", el("code", text), "."))
    return join(*parts, by=" ")
