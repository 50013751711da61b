"""Flags derived from the fields of an API record: their names, types and help texts."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from penstock.edge.cli.kit.flags import NONE, duration, instant, or_none, pair, size, switch
from penstock.edge.cli.kit.parser import Parser, default_text


class Form(NamedTuple):
    """How to display and parse a flag whose field type is not enough for that."""

    value: str  # "RATE"
    parse: Callable[[str], Any]
    text: str = ""  # added to the help
    is_whole: bool = False  # parses a whole object, not one of its members


class _Field(NamedTuple):
    flag: str
    types: tuple[Any, ...]  # without None
    is_optional: bool
    text: str
    default: Any


class RecordFlags:
    """Some fields of a record as flags.

    `fields` names them, separated by spaces; `field:flag` renames a flag.  By default a flag has
    the field's name without its unit (`lease_ms`: `--lease`).  `texts` replaces descriptions that
    do not suit a flag.  With `is_patch` only the given fields are changed: switches take YES or NO,
    and `none` unsets an optional field.
    """

    def __init__(
        self,
        record: type,
        fields: str,
        *,
        forms: Mapping[str, Form] | None = None,
        texts: Mapping[str, str] | None = None,
        is_patch: bool = False,
    ) -> None:
        hints = get_type_hints(record, include_extras=True)
        defaults = {field.name: field.default for field in msgspec.structs.fields(record)}
        self._forms = forms or {}
        self._texts = texts or {}
        self._is_patch = is_patch
        self._fields: dict[str, _Field] = {}
        for word in fields.split():
            name, _, flag = word.partition(":")
            flag = flag or re.sub("^is_|_ms$|_bytes$", "", name).replace("_", "-")
            self._fields[name] = _Field(flag, *_type_of(hints[name]), defaults[name])

    def add(self, parser: Parser) -> None:
        for name, field in self._fields.items():
            options = self._options(name, field)
            parser.flag(f"--{field.flag}", self._help(name, field), **options)

    def values(self, args: Namespace) -> dict[str, Any]:
        """The fields whose flags were given."""
        given = {name: self._value(name, field, args) for name, field in self._fields.items()}
        return {
            name: None if value == NONE and self._can_be_none(self._fields[name]) else value
            for name, value in given.items()
            if value is not None
        }

    def _options(self, name: str, field: _Field) -> dict[str, Any]:
        kind, origin = field.types[0], get_origin(field.types[0])
        value = field.flag.rpartition("-")[2].upper()
        options: dict[str, Any] = {"value": value}
        if name in self._forms:
            form = self._forms[name]
            options = {"value": form.value, "type": form.parse}
        elif kind is bool:
            options = {"value": "YES/NO", "type": switch} if self._is_patch else {}
        elif origin is dict:
            options = {"value": "NAME=VALUE", "type": pair}
        elif set(field.types) in ({int, str}, {Any}):
            options = {"value": "INSTANT", "type": instant}
        elif kind is int and name.endswith("_ms"):
            options = {"value": "DURATION", "type": duration}
        elif kind is int and name.endswith("_bytes"):
            options = {"value": "SIZE", "type": size}
        elif kind is int:
            options = {"value": "N", "type": int}
        elif choices := _choices(kind):
            options = {"value": value, "choices": choices}
        if self._is_repeated(name, field):
            options["action"] = "append"
        if self._can_be_none(field):
            options["type"] = or_none(options.get("type", str))
        return options

    def _is_repeated(self, name: str, field: _Field) -> bool:
        origin = get_origin(field.types[0])
        return origin in (tuple, list) or (origin is dict and not self._is_whole(name))

    def _is_whole(self, name: str) -> bool:
        return name in self._forms and self._forms[name].is_whole

    def _can_be_none(self, field: _Field) -> bool:
        return self._is_patch and (field.is_optional or get_origin(field.types[0]) is dict)

    def _help(self, name: str, field: _Field) -> str:
        if name in self._texts:
            return self._texts[name]
        text = re.sub(r" \([a-z_, ]+\)", "", field.text)  # the verbs that take an act's field
        text = text[:1].lower() + text[1:].rstrip(".")
        text = text.replace("null:", "none:" if self._is_patch else "default:")
        for other, one in self._fields.items():
            if "_" in other:
                text = re.sub(rf"\b{other}\b", f"--{one.flag}", text)
        if choices := _choices(field.types[0]):
            text += f"; one of {', '.join(choices)}"
        if name in self._forms and self._forms[name].text:
            text += f": {self._forms[name].text}"
        if self._is_repeated(name, field):
            text += "; may be repeated"
        return text + default_text(field.default, duration if name.endswith("_ms") else None)

    def _value(self, name: str, field: _Field, args: Namespace) -> Any:
        value = getattr(args, field.flag.replace("-", "_"))
        kind = field.types[0]
        if value is None or value == [] or (value is False and not self._is_patch):
            return None
        if get_origin(kind) is dict and not self._is_whole(name):
            return dict(one for one in value if one != NONE)
        if get_origin(kind) in (tuple, list):
            return tuple(value)
        if isinstance(kind, type) and issubclass(kind, StrEnum) and name not in self._forms:
            return kind(value)
        return value


def _type_of(hint: Any) -> tuple[tuple[Any, ...], bool, str]:
    """The types of a field without None, whether it may be None, and its description."""
    texts: list[str] = []
    types: list[Any] = []

    def collect(hint: Any) -> None:
        if get_origin(hint) is Annotated:
            inner, *metas = get_args(hint)
            texts.extend(m.description for m in metas if isinstance(m, Meta) and m.description)
            collect(inner)
        elif get_origin(hint) in (dict, tuple, list, Literal) or not get_args(hint):
            types.append(hint)
        else:
            for part in get_args(hint):
                collect(part)

    collect(hint)
    known = tuple(one for one in types if one is not NoneType)
    return known, NoneType in types, texts[0] if texts else ""


def _choices(kind: Any) -> list[str]:
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return [str(one) for one in kind]
    return []
