"""The records of the API as JSON schemas, under public names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import inspect

Schema = dict[str, Any]

REF = "#/components/schemas/"
_SUFFIX = re.compile(r"(In|(?<!^Time)Out)$")  # TimeOut keeps its own name
_POSITIVE = frozenset(
    {
        "burst",
        "limit",
        "max_attempts",
        "max_body_bytes",
        "max_leased",
        "max_leased_per_group",
        "max_messages",
        "max_per_second",
        "per_ms",
    }
)
_INSTANT = re.compile(r"(_at|_until)$|^now$")
# Instants published without a format since 0.1.0.
_PLAIN = frozenset({"at", "from", "since", "to"})
_TAG = "Selects this variant."
_SHORT_IDS = frozenset({"ErrorGroup", "Key"})  # the ids of all others are UUIDs
# Names published since 0.1.0 that differ from those of our records.
_PUBLISHED_AS = {
    "LastChange": "Made",
    "MessageHistory": "Past",
    "TableReadiness": "GoldReadiness",
    "TableSummary": "GoldTable",
}


def components(types: Iterable[Any]) -> dict[str, Schema]:
    """The schemas of the types and of all types they refer to."""
    _, found = msgspec.json.schema_components(types, ref_template=REF + "{name}")
    schemas = {public_name(name): _publish(name, schema) for name, schema in sorted(found.items())}
    assert len(schemas) == len(found), "two types have the same public name"
    return schemas


def ref(kind: Any) -> Schema:
    """A reference to a record, or the schema itself for simpler types."""
    [schema], _ = msgspec.json.schema_components([kind], ref_template=REF + "{name}")
    renamed: Schema = _rename(schema)
    return renamed


def properties(kind: type[msgspec.Struct]) -> dict[str, Schema]:
    """The schemas of a record's fields."""
    found = msgspec.json.schema(kind, ref_template=REF + "{name}")
    fields: dict[str, Schema] = found["$defs"][kind.__name__]["properties"]
    return fields


def enums_of(kind: type[msgspec.Struct]) -> set[Any]:
    """The enumerations that the fields of a record refer to."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    found = set()
    for field in info.fields:
        inner = field.type.type if isinstance(field.type, inspect.Metadata) else field.type
        choices = inner.types if isinstance(inner, inspect.UnionType) else (inner,)
        found |= {choice.cls for choice in choices if isinstance(choice, inspect.EnumType)}
    return found


def public_name(name: str) -> str:
    """The name in the document, without our suffixes In and Out: NewTask of NewTaskIn."""
    return _PUBLISHED_AS.get(name) or _SUFFIX.sub("", name)


def _publish(name: str, schema: Schema) -> Schema:
    published: Schema = _rename(schema)
    published.pop("title", None)
    for field, of_field in published.get("properties", {}).items():
        if "enum" in of_field and len(of_field["enum"]) == 1:  # the discriminator of a variant
            of_field["description"] = _TAG
        _sharpen(name, field, of_field)
    if "enum" in published:
        published["type"] = "string"
    if published.get("required") == []:
        del published["required"]
    return published


def _sharpen(name: str, field: str, schema: Schema) -> None:
    """Add constraints that the type alone does not express."""
    choices = schema.get("anyOf", [schema])
    if field == "instants":  # published without a format in 0.1.0
        schema["items"].pop("format", None)
    if {} in choices:  # any JSON value, including null
        del schema["anyOf"]
        schema.pop("default", None)
    for choice in choices:
        if choice.get("type") == "string" and _INSTANT.search(field):
            choice["format"] = "date-time"
        elif field in _PLAIN:
            choice.pop("format", None)
        if choice.get("type") == "string" and field == "id" and name not in _SHORT_IDS:
            choice["format"] = "uuid"
        if choice.get("type") == "integer" and (field.endswith("_ms") or field in _POSITIVE):
            choice["minimum"] = int(field in _POSITIVE)


def _rename(value: Any) -> Any:
    """Replace references with those to public names."""
    if isinstance(value, dict):
        return {key: _rename(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_rename(part) for part in value]
    if isinstance(value, str) and value.startswith(REF):
        return REF + public_name(value.removeprefix(REF))
    return value
