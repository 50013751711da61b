"""The definitions file: queues, topics, routes and so on, without messages, keys and secrets.

A section that is left out is not touched.  The records are those of the HTTP API.
"""

from __future__ import annotations

import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import yaml
from msgspec import UNSET, UnsetType

from penstock.api.recurring import NewRecurring
from penstock.api.topics import Subscribe
from penstock.domain.circuit.overrides import BreakerOverrides
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.errors import InvalidRequest
from penstock.domain.queue.queue import QueueSettings
from penstock.domain.scaling.profile_overrides import ProfileOverrides

Subscriptions = dict[str, Subscribe]


class Definitions(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    queues: dict[str, QueueSettings] | UnsetType = UNSET
    topics: dict[str, Subscriptions] | UnsetType = UNSET
    routes: dict[str, Any] | UnsetType = UNSET  # in gateleen's form, as `PUT /v1/routes` takes it
    breaker: BreakerSettings | UnsetType = UNSET
    circuits: dict[str, BreakerOverrides] | UnsetType = UNSET  # by route
    fleets: dict[str, ProfileOverrides] | UnsetType = UNSET
    recurring: dict[str, NewRecurring] | UnsetType = UNSET


class _Loader(yaml.SafeLoader):
    """YAML 1.2's words: `on`, `no` and dates stay texts."""

    yaml_implicit_resolvers: ClassVar = {  # type: ignore[misc]
        first: [
            (tag, pattern)
            for tag, pattern in resolvers
            if tag != "tag:yaml.org,2002:timestamp"
            and (tag != "tag:yaml.org,2002:bool" or first in "tTfF")
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


class Format(StrEnum):
    YAML = "yaml"
    JSON = "json"


def read_definitions(path: Path) -> Definitions:
    """Read YAML, TOML or JSON, by the ending of the file's name; raises InvalidRequest."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise InvalidRequest(f"cannot read {path}: {error}") from None
    return parse_definitions(text, name=str(path))


def parse_definitions(text: str, *, name: str) -> Definitions:
    """The same of a text; `name` is that of its file."""
    try:
        # Through JSON, so that every format has the same types and errors.
        given = msgspec.json.encode(_parse(text, Path(name).suffix.lower()) or {})
        return msgspec.json.decode(given, type=Definitions)
    except (ValueError, TypeError, RecursionError, yaml.YAMLError) as error:
        raise InvalidRequest(f"{name}: {error}") from None


def _parse(text: str, ending: str) -> Any:
    match ending:
        case ".yaml" | ".yml":
            return _Loader(text).get_single_data()
        case ".toml":
            return tomllib.loads(text)
        case ".json":
            return msgspec.json.decode(text)
    raise ValueError("the file's name must end in .yaml, .yml, .toml or .json")


def render(definitions: Definitions, form: Format) -> str:
    values = {
        section: _plain_section(value)
        for section in definitions.__struct_fields__
        if (value := getattr(definitions, section)) is not UNSET
    }
    if form is Format.JSON:
        return msgspec.json.format(msgspec.json.encode(values)).decode() + "\n"
    return str(yaml.safe_dump(values, sort_keys=False, allow_unicode=True))


def plain(record: msgspec.Struct) -> dict[str, Any]:
    """The fields of a record that differ from their defaults, as JSON values."""
    values: dict[str, Any] = _json(record)
    for field in msgspec.structs.fields(record):
        value = getattr(record, field.name)
        if field.name in values and value == _default_of(field):
            del values[field.name]
        elif isinstance(value, msgspec.Struct):
            values[field.name] = plain(value)
    return values


def _default_of(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _plain_section(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return plain(value)
    return {name: _plain_section(inner) for name, inner in value.items()}


def _json(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))
