"""Cards of the page: an operation with a command to try it, and a schema with its fields."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.domain.access.api_key import Scope
from penstock.edge.native.docs.curl import example
from penstock.edge.native.docs.markup import Html, el, inline, join, table
from penstock.edge.native.docs.samples import answer, python
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


def schema_card(name: str, schema: Schema) -> Html:
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


Part = dict[str, Any]

# Which queues the key must cover, in addition to its role.
_QUEUES = {
    Scope.QUEUE: " for the queue",
    Scope.NAMED: " for the queue it is about",
    Scope.FILTERED: "; the answer covers the queues that the key is for",
    Scope.NONE: "",
    Scope.ALL: " for all queues",
}


def operation_card(
    method: str, path: str, operation: Part, schemas: dict[str, Schema], *, with_key: bool
) -> Html:
    sample = answer(operation, schemas)
    return el(
        "section",
        el("h3", verb(method), " ", el("code", path)),
        el("p", inline(operation["summary"]), class_="summary"),
        el("pre", el("code", example(method, path, operation, with_key=with_key)), tabindex="0"),
        _folded("Python", python(method, path, operation, with_key=with_key)),
        "" if sample is None else _folded("Example answer", sample),
        _parameters(operation),
        _body(operation),
        _answers(operation),
        class_="card",
        id=anchor(operation),
    )


def _folded(title: str, text: str) -> Html:
    return el("details", el("summary", title), el("pre", el("code", text), tabindex="0"))


def verb(method: str) -> Html:
    return el("span", method, class_=f"verb {method.lower()}")


def anchor(operation: Part) -> str:
    return f"op-{operation['operationId']}"


def _parameters(operation: Part) -> Html:
    rows = [
        (
            join(el("code", p["name"]), " ", el("span", f"in {p['in']}", class_="small")),
            in_words(p["schema"]),
            join(inline(p["description"]), _default(p["schema"])),
        )
        for p in operation["parameters"]
    ]
    return table(("parameter", "type", "meaning"), rows)


def _default(schema: Part) -> Html:
    if "default" not in schema:
        return join()
    return join(" Default ", el("code", str(schema["default"]).lower()), ".")


def _body(operation: Part) -> Html:
    if "requestBody" not in operation:
        return join()
    body = operation["requestBody"]
    [media] = body["content"].values()
    needed = "" if body["required"] else " (optional)"
    return el("p", el("strong", "Body: "), in_words(media["schema"]), needed, ".")


def _answers(operation: Part) -> Html:
    answers = operation["responses"].items()
    good = [_success(status, response) for status, response in answers if status < "400"]
    bad = [
        join(status, " ", inline(response["description"]))
        for status, response in answers
        if status >= "400"
    ]
    return join(
        el("p", el("strong", "Answer: "), join(*good, by=" or "), "."),
        el("p", "Refusals: ", join(*bad, by=" · "), class_="small"),
        _role(operation),
    )


def _success(status: str, response: Part) -> Html:
    contents = response.get("content", {}).items()
    what = [join(" ", in_words(of["schema"]), _unusual(media)) for media, of in contents]
    return join(el("span", status, class_="status"), *what)


def _unusual(media: str) -> str:
    return "" if media == "application/json" else f" ({media})"


def _role(operation: Part) -> Html:
    if "security" not in operation:
        return el("p", "No key is needed.", class_="small")
    [[role]] = operation["security"][0].values()
    queues = _QUEUES[Scope(operation["x-queues"])]
    return el("p", "A key needs the role ", el("code", role), f"{queues}.", class_="small")
