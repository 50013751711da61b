"""The names that lists and maps have in the Query protocol, where both are flattened.

`Attributes` is sent as Attribute.1.Name, Attribute.1.Value, … and answered as repeated <Attribute>.
"""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

import msgspec


class Names(NamedTuple):
    element: str
    key: str = "Name"  # of maps
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


class Member(NamedTuple):
    name: str
    kind: type  # list, dict, or the type of a single value
    inner: type  # of a list's or a map's values; else as `kind`
    names: Names


@cache
def members(struct: type[msgspec.Struct]) -> tuple[Member, ...]:
    return tuple(_member(field.name, field.type) for field in msgspec.structs.fields(struct))


def is_struct(kind: type) -> bool:
    return issubclass(kind, msgspec.Struct)


def _member(name: str, hint: Any) -> Member:
    if get_origin(hint) in (Union, UnionType):  # only ever with None
        [hint] = [option for option in get_args(hint) if option is not type(None)]
    kind = get_origin(hint)
    if kind is None:
        return Member(name, hint, hint, Names(name))
    inner = get_args(hint)[-1]
    # Lists of structures are called what their structure is called.
    names = Names(inner.__name__) if kind is list and is_struct(inner) else _NAMES[name]
    return Member(name, kind, inner, names)
