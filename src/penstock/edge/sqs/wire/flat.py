"""Names of lists and maps in the Query protocol, which flattens them.

`Attributes` is sent as Attribute.1.Name, Attribute.1.Value, …; responses repeat <Attribute>.
"""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

import msgspec


class Names(NamedTuple):
    element: str
    key: str = "Name"  # for maps
    value: str = "Value"


_NAMES = {
    "AWSAccountIds": Names("AWSAccountId"),
    "Actions": Names("ActionName"),
    "AttributeNames": Names("AttributeName"),
    "Attributes": Names("Attribute"),
    "BinaryListValues": Names("BinaryListValue"),
    "MessageAttributeNames": Names("MessageAttributeName"),
    "MessageAttributes": Names("MessageAttribute"),
    "MessageSystemAttributeNames": Names("MessageSystemAttributeName"),
    "MessageSystemAttributes": Names("MessageSystemAttribute"),
    "QueueUrls": Names("QueueUrl"),
    "StringListValues": Names("StringListValue"),
    "TagKeys": Names("TagKey"),
    "Tags": Names("Tag", "Key"),
    "tags": Names("Tag", "Key"),
}


class QueryMember(NamedTuple):
    name: str
    kind: type  # list, dict, or the type of a single value
    inner: type  # the type of the values of a list or map; else the same as `kind`
    names: Names


@cache
def members(struct: type[msgspec.Struct]) -> tuple[QueryMember, ...]:
    return tuple(_member(field.name, field.type) for field in msgspec.structs.fields(struct))


def is_struct(kind: type) -> bool:
    return issubclass(kind, msgspec.Struct)


def _member(name: str, hint: Any) -> QueryMember:
    if get_origin(hint) in (Union, UnionType):  # unions are always with None
        [hint] = [option for option in get_args(hint) if option is not type(None)]
    kind = get_origin(hint)
    if kind is None:
        return QueryMember(name, hint, hint, Names(name))
    inner = get_args(hint)[-1]
    # A list of structures is named after its structure.
    names = Names(inner.__name__) if kind is list and is_struct(inner) else _NAMES[name]
    return QueryMember(name, kind, inner, names)
