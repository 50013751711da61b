"""Message attributes with their types, kept as the plain texts that all faces know.

A text is kept under its own name; a number and a labelled type likewise, binary values in base64.
Which of them are no plain strings stands in one attribute more.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

import msgspec

from penstock.edge.sqs.rules.message_attributes import chosen
from penstock.edge.sqs.wire.model import MessageAttributeValue

TYPES = "AWS.types"  # names and data types, as JSON; SQS refuses such names from senders
_STRING = "String"

_encode = msgspec.json.Encoder().encode
_types = msgspec.json.Decoder(dict[str, str])


def kept(attributes: Mapping[str, MessageAttributeValue]) -> dict[str, str]:
    texts: dict[str, str] = {}
    types: dict[str, str] = {}
    for name, value in attributes.items():
        if value.BinaryValue is not None:
            texts[name] = base64.b64encode(value.BinaryValue).decode()
        else:
            texts[name] = value.StringValue or ""
        data_type = value.DataType or _STRING
        if data_type != _STRING:
            types[name] = data_type
    if types:
        texts[TYPES] = _encode(types).decode()
    return texts


def shown(
    texts: Mapping[str, str], wanted: Sequence[str] | None
) -> dict[str, MessageAttributeValue]:
    """Those that a receiver asked for; attributes that other faces have sent are strings."""
    types = _read_types(texts.get(TYPES))
    typed = {
        name: _value(text, types.get(name, _STRING))
        for name, text in texts.items()
        if name != TYPES
    }
    return chosen(typed, wanted)


def _value(text: str, data_type: str) -> MessageAttributeValue:
    if data_type.partition(".")[0] == "Binary":
        try:
            return MessageAttributeValue(
                BinaryValue=base64.b64decode(text, validate=True), DataType=data_type
            )
        except ValueError:  # another face has given a text the name of this type
            return MessageAttributeValue(StringValue=text, DataType=_STRING)
    return MessageAttributeValue(StringValue=text, DataType=data_type)


def _read_types(text: str | None) -> dict[str, str]:
    if text is None:
        return {}
    try:
        return _types.decode(text)
    except msgspec.DecodeError:
        return {}
