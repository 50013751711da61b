"""Filters: which events a subscription gets, by their attributes or by their bodies.

A filter is a JSON object in the language of SNS's filter policies.  All its keys must match; a key
matches if any of its conditions does; `$or` lists alternatives.  In a body, keys may be nested, and
of an array any element may match.  Filters are compiled once for each text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec

from penstock.domain.bus.conditions import (
    EXISTS,
    RESERVED,
    InvalidFilter,
    Test,
    compile_condition,
    number_of,
)
from penstock.domain.message.attribute_types import TYPES, types_of

MAX_FILTER_CHARS = 32 * 1024
MAX_COMBINATIONS = 150
_OR = "$or"
_ABSENT: list[Any] = []

Matches = Callable[[Any], bool]  # of an object


class FilterScope(StrEnum):
    ATTRIBUTES = "attributes"
    BODY = "body"


class CompiledFilter(msgspec.Struct, frozen=True):
    """A compiled filter."""

    scope: FilterScope
    matches: Matches
    keys: int  # how many keys have conditions

    def accepts(self, event: FilteredEvent) -> bool:
        found = event.body if self.scope is FilterScope.BODY else event.attributes
        return isinstance(found, dict) and self.matches(found)


class FilteredEvent:
    """What filters look at; parsed once, when the first filter asks for it."""

    __slots__ = ("_attributes", "_body", "_given", "_text")

    def __init__(self, text: str, attributes: Mapping[str, str] | None) -> None:
        """`text`: the body as JSON; a JSON string that contains JSON counts as what it contains."""
        self._text = text
        self._given = attributes
        self._attributes: dict[str, Any] | None = None
        self._body: Any = self

    @property
    def attributes(self) -> dict[str, Any]:
        if self._attributes is None:
            self._attributes = _values(self._given or {})
        return self._attributes

    @property
    def body(self) -> Any:
        if self._body is self:
            self._body = _parsed(self._text)
        return self._body


@lru_cache(maxsize=8_192)
def compile_filter(text: str, scope: FilterScope) -> CompiledFilter:
    """Raises InvalidFilter."""
    if len(text) > MAX_FILTER_CHARS:
        raise InvalidFilter(f"Filter policy has more than {MAX_FILTER_CHARS} characters")
    try:
        given = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise InvalidFilter("failed to parse JSON") from None
    if not isinstance(given, dict):
        raise InvalidFilter("Filter policy must be a JSON object")
    compiler = _Compiler(scope)
    matches = compiler.object(given, depth=1)
    if compiler.combinations > MAX_COMBINATIONS:
        raise InvalidFilter("Filter policy is too complex")
    return CompiledFilter(scope, matches, compiler.keys)


class _Compiler:
    def __init__(self, scope: FilterScope) -> None:
        self._is_nested = scope is FilterScope.BODY
        self.keys = 0
        self.combinations = 1

    def object(self, given: dict[str, Any], *, depth: int) -> Matches:
        if depth > MAX_COMBINATIONS:  # a condition there counts as many combinations
            raise InvalidFilter("Filter policy is too complex")
        if not given and depth > 1:
            raise InvalidFilter("Empty objects are not allowed")
        parts = [self._member(name, rule, depth) for name, rule in given.items()]
        if len(parts) == 1:
            return parts[0]
        return lambda found: all(part(found) for part in parts)

    def _member(self, name: str, rule: Any, depth: int) -> Matches:
        if name == _OR and _is_alternatives(rule):
            return self._either(rule, depth)
        if isinstance(rule, list):
            return self._conditions(name, rule, depth)
        if not isinstance(rule, dict):
            raise InvalidFilter(f'"{name[:100]}" must be an object or an array')
        if not self._is_nested:
            raise InvalidFilter(
                "Filter policy scope MessageAttributes does not support nested filter policy"
            )
        return _below(name, self.object(rule, depth=depth + 1))

    def _either(self, rules: list[dict[str, Any]], depth: int) -> Matches:
        before, total = self.combinations, 0
        parts = []
        for rule in rules:
            self.combinations = before
            parts.append(self.object(rule, depth=depth))
            total += self.combinations
        self.combinations = total
        return lambda found: any(part(found) for part in parts)

    def _conditions(self, name: str, rules: list[Any], depth: int) -> Matches:
        if not rules:
            raise InvalidFilter("Empty arrays are not allowed")
        self.keys += 1
        self.combinations *= len(rules) * depth
        tests: list[Test] = []
        presence: list[bool] = []
        for rule in rules:
            if isinstance(rule, dict) and EXISTS in rule:
                presence.append(_exists(rule))
            else:
                tests.append(compile_condition(rule))
        return _leaf(name, tests, presence)


def _is_alternatives(rule: Any) -> bool:
    return (
        isinstance(rule, list)
        and len(rule) > 1
        and all(isinstance(one, dict) and one and RESERVED.isdisjoint(one) for one in rule)
    )


def _exists(rule: dict[str, Any]) -> bool:
    if len(rule) != 1:
        raise InvalidFilter("Only one key allowed in match expression")
    wanted = rule[EXISTS]
    if not isinstance(wanted, bool):
        raise InvalidFilter("exists match pattern must be either true or false.")
    return wanted


def _below(name: str, matches: Matches) -> Matches:
    """Of an array any object may match, but all nested keys within the same one."""

    def test(found: Any) -> bool:
        value = found.get(name) if isinstance(found, dict) else None
        if isinstance(value, list):
            return any(isinstance(one, dict) and matches(one) for one in _flat(value))
        return matches(value if isinstance(value, dict) else {})

    return test


def _leaf(name: str, tests: list[Test], presence: list[bool]) -> Matches:
    has_presence = bool(presence)

    def test(found: Any) -> bool:
        if not isinstance(found, dict):
            return False
        is_there = name in found
        if has_presence and is_there in presence:
            return True
        if not is_there:
            return False
        value = found[name]
        values = _flat(value) if isinstance(value, list) else (value,)
        return any(test(one) for one in values for test in tests)

    return test


def _flat(values: list[Any]) -> list[Any]:
    """The elements, also those of nested arrays, which may be too deep to recurse."""
    if not any(isinstance(one, list) for one in values):
        return values
    found: list[Any] = []
    left = values[::-1]
    while left:
        one = left.pop()
        if isinstance(one, list):
            left += one[::-1]
        else:
            found.append(one)
    return found


def _parsed(text: str) -> Any:
    try:
        value = msgspec.json.decode(text)
        return msgspec.json.decode(value) if isinstance(value, str) else value
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None  # matches no filter


def _values(attributes: Mapping[str, str]) -> dict[str, Any]:
    """Attributes as typed values: numbers, and the elements of arrays."""
    types = types_of(attributes)
    return {
        name: _value(text, types.get(name, ""))
        for name, text in attributes.items()
        if name != TYPES
    }


def _value(text: str, data_type: str) -> Any:
    if data_type.startswith("Number"):
        return number_of(text)
    if data_type == "String.Array":
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return text
    return _ABSENT if data_type.startswith("Binary") else text
