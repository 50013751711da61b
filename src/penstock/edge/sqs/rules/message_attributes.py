"""Rules for message attributes and message system attributes."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation

import msgspec

from penstock.domain.message.attribute_types import STRING, SUBJECT, TYPES, types_of
from penstock.edge.aws.characters import FORBIDDEN
from penstock.edge.aws.errors import AwsError, invalid_parameter
from penstock.edge.sqs.errors import unsupported_operation
from penstock.edge.sqs.wire.model import MessageAttributeValue

MAX_ATTRIBUTES = 10
LONGEST_TRACE = 1024  # the limit of the core
TRACE_HEADER = "AWSTraceHeader"

_ALL = frozenset({"All", "*", ".*"})

_NAME_CHARS = 256
_TYPE_CHARS = 256
_NAME = re.compile(r"[A-Za-z0-9_.\-\u00c0-\u017f]+")  # AWS accepts accented letters
_RESERVED = ("aws.", "amazon.")
_TYPES = ("String", "Number", "Binary")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_MAX_DIGITS = 38
_LARGEST = Decimal("1e126")
_SMALLEST = Decimal("1e-128")

_encode = msgspec.json.Encoder().encode
_OURS = (TYPES, SUBJECT)


def check(attributes: Mapping[str, MessageAttributeValue]) -> int:
    """Return their contribution to the message size, in bytes; raises InvalidParameterValue."""
    if len(attributes) > MAX_ATTRIBUTES:
        raise invalid_parameter(
            f"Number of message attributes [{len(attributes)}] exceeds the allowed maximum "
            f"[{MAX_ATTRIBUTES}]."
        )
    return sum(check_one(name, value) for name, value in attributes.items())


def chosen(
    attributes: Mapping[str, MessageAttributeValue], names: Sequence[str] | None
) -> dict[str, MessageAttributeValue]:
    """The attributes that the receiver asked for: all, by prefix, or by name."""
    if not names:
        return {}
    if not _ALL.isdisjoint(names):
        return dict(attributes)
    starts = tuple(name.removesuffix(".*") for name in names if name.endswith(".*"))
    return {
        name: value
        for name, value in attributes.items()
        if name in names or (starts and name.startswith(starts))
    }


def check_system(attributes: Mapping[str, MessageAttributeValue]) -> str | None:
    """Return the trace header, the only one allowed; it does not count towards the size."""
    for name in attributes:
        if name != TRACE_HEADER:
            raise invalid_parameter(f"Message system attribute name '{name}' is invalid.")
    value = attributes.get(TRACE_HEADER)
    if value is None:
        return None
    if value.DataType != "String":
        raise invalid_parameter(
            f"The message system attribute '{TRACE_HEADER}' has an invalid message system "
            "attribute type, the set of supported types is String."
        )
    if not value.StringValue:
        raise invalid_parameter(
            f"Message (system) attribute '{TRACE_HEADER}' must contain a non-empty value of type "
            "'String'."
        )
    _check_text(TRACE_HEADER, value.StringValue)
    if len(value.StringValue) > LONGEST_TRACE:
        raise invalid_parameter(
            f"Message system attribute '{TRACE_HEADER}' must be at most {LONGEST_TRACE} characters "
            "long."
        )
    return value.StringValue


def check_one(name: str, value: MessageAttributeValue) -> int:
    _check_name(name)
    if value.StringListValues or value.BinaryListValues:
        raise unsupported_operation(
            "Message attribute list values in SendMessage operation are not supported."
        )
    data_type = value.DataType or ""
    base = _base_type(name, data_type)
    size = len(name.encode()) + len(data_type.encode())
    if base == "Binary":
        if not value.BinaryValue or value.StringValue is not None:
            raise _no_value(name, base)
        return size + len(value.BinaryValue)
    text = value.StringValue
    if not text or value.BinaryValue is not None:
        raise _no_value(name, base)
    _check_text(name, text)
    if base == "Number":
        _check_number(name, text)
    return size + len(text.encode())


def _check_name(name: str) -> None:
    if not name or len(name) > _NAME_CHARS:
        raise invalid_parameter(
            f"Message (user) attribute names must have 1 to {_NAME_CHARS} characters."
        )
    if not _NAME.fullmatch(name) or name[0] == "." or name[-1] == "." or ".." in name:
        raise invalid_parameter(
            f"The message attribute name '{name}' is invalid. Attribute name can contain A-Z, a-z, "
            "0-9, underscore (_), hyphen (-), and period (.) characters."
        )
    if name.lower().startswith(_RESERVED):
        raise invalid_parameter(
            "You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. "
            "These strings are reserved for internal use."
        )


def _base_type(name: str, data_type: str) -> str:
    if not data_type:
        raise invalid_parameter(
            f"The message attribute '{name}' must contain non-empty message attribute type."
        )
    base, _, label = data_type.partition(".")
    is_labelled_well = bool(label) or base == data_type
    if base not in _TYPES or not is_labelled_well or len(data_type) > _TYPE_CHARS:
        raise invalid_parameter(
            f"The message attribute '{name}' has an invalid message attribute type, the set of "
            "supported type prefixes is Binary, Number, and String."
        )
    _check_text(name, data_type)
    return base


def _check_text(name: str, text: str) -> None:
    found = FORBIDDEN.search(text)
    if found:
        raise invalid_parameter(
            f"Invalid binary character '#x{ord(found.group()):X}' was found in the message "
            f"attribute '{name}'."
        )


def _check_number(name: str, text: str) -> None:
    try:
        number = Decimal(text) if _NUMBER.fullmatch(text) else None
    except InvalidOperation:
        number = None
    if number is None:
        raise invalid_parameter(
            f"Can't cast the value of message (user) attribute '{name}' to a number."
        )
    digits = text.lower().partition("e")[0].replace(".", "").lstrip("+-0").rstrip("0")
    is_within = not number or _SMALLEST <= number.copy_abs() <= _LARGEST
    if len(digits) > _MAX_DIGITS or not is_within:
        raise invalid_parameter(
            f"Number attribute value {text[:100]} should be in range (-10**128..10**126)"
        )


def _no_value(name: str, base: str) -> AwsError:
    return invalid_parameter(
        f"Message (user) attribute '{name}' must contain a non-empty value of type '{base}'."
    )


# --- storage as plain strings, which all APIs support ---
# Strings, numbers and custom types under their own names, binary values in base64; the data types
# of all but plain strings in one more attribute.


def to_stored(attributes: Mapping[str, MessageAttributeValue]) -> dict[str, str]:
    texts: dict[str, str] = {}
    types: dict[str, str] = {}
    for name, value in attributes.items():
        if value.BinaryValue is not None:
            texts[name] = base64.b64encode(value.BinaryValue).decode()
        else:
            texts[name] = value.StringValue or ""
        data_type = value.DataType or STRING
        if data_type != STRING:
            types[name] = data_type
    if types:
        texts[TYPES] = _encode(types).decode()
    return texts


def from_stored(
    texts: Mapping[str, str], wanted: Sequence[str] | None
) -> dict[str, MessageAttributeValue]:
    """The attributes that the receiver asked for; those sent through other APIs are strings."""
    types = types_of(texts)
    typed = {
        name: _value(text, types.get(name, STRING))
        for name, text in texts.items()
        if name not in _OURS
    }
    return chosen(typed, wanted)


def _value(text: str, data_type: str) -> MessageAttributeValue:
    if data_type.partition(".")[0] == "Binary":
        try:
            return MessageAttributeValue(
                BinaryValue=base64.b64decode(text, validate=True), DataType=data_type
            )
        except ValueError:  # another API stored a string under this data type
            return MessageAttributeValue(StringValue=text, DataType=STRING)
    return MessageAttributeValue(StringValue=text, DataType=data_type)
