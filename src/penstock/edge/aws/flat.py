"""Names of lists and maps in the Query protocol, which flattens them.

SQS sends `Attributes` as Attribute.1.Name, Attribute.1.Value, …, and repeats <Attribute> in its
responses; SNS sends Attributes.entry.1.key, and nests <entry> in <Attributes>.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from types import UnionType
from typing import Any, ClassVar, NamedTuple, Union, get_args, get_origin

import msgspec


class Names(NamedTuple):
    path: tuple[str, ...]  # of the elements of a list or map, or of a single value
    key: str = "Name"  # for maps
    value: str = "Value"


class QueryMember(NamedTuple):
    name: str
    kind: type  # list, dict, or the type of a single value
    inner: type  # the type of the values of a list or map; else the same as `kind`
    names: Names


class Dialect(ABC):
    """How one API names members."""

    namespace: ClassVar[str]  # of its XML

    @abstractmethod
    def names(self, member: str, kind: type, inner: type) -> Names:
        """Of a list or map."""

    def json_name(self, member: str) -> str:
        """Of a member in a response as JSON."""
        return member

    def other_name(self, member: str) -> str:
        """That some clients send in its place; "" if there is none."""
        return ""


@cache
def members(struct: type[msgspec.Struct], dialect: Dialect) -> tuple[QueryMember, ...]:
    return tuple(
        _member(field.name, field.type, dialect) for field in msgspec.structs.fields(struct)
    )


def is_struct(kind: type) -> bool:
    return issubclass(kind, msgspec.Struct)


def _member(name: str, hint: Any, dialect: Dialect) -> QueryMember:
    if get_origin(hint) in (Union, UnionType):  # unions are always with None
        [hint] = [option for option in get_args(hint) if option is not type(None)]
    kind = get_origin(hint)
    if kind is None:
        return QueryMember(name, hint, hint, Names((name,)))
    inner = get_args(hint)[-1]
    return QueryMember(name, kind, inner, dialect.names(name, kind, inner))
