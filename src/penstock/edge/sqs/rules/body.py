"""A message's body: JSON text for the store, UTF-8 for digests and sizes.

The store keeps JSON.  A body without escapes is identical in both forms, so it is sliced, not
decoded.  JSON allows no bare control characters, so only escapes, U+FFFE and U+FFFF can stand for
forbidden ones.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

import msgspec

from penstock.edge.aws.characters import FORBIDDEN
from penstock.edge.aws.errors import AwsError
from penstock.edge.aws.errors import serialization as unreadable
from penstock.edge.sqs.errors import invalid_message_contents, missing_parameter
from penstock.edge.sqs.wire.model import MessageAttributeValue

_ABSENT = ("", "null", '""')
_CODED = re.compile(r"\\[ubf]")  # the escapes that may stand for a forbidden character
_text = msgspec.json.Decoder(str)
_encode = msgspec.json.Encoder().encode
_STRING = b"\x01"
_BINARY = b"\x02"


class Body(msgspec.Struct, frozen=True, gc=False):
    json: str  # a JSON string, to be stored
    utf8: bytes  # the decoded text

    @property
    def text(self) -> str:
        return self.utf8.decode()


def read(raw: msgspec.Raw) -> Body:
    """Check MessageBody; raises MissingParameter, InvalidMessageContents or Serialization."""
    try:
        json = str(raw, "utf-8")
    except UnicodeDecodeError:
        raise invalid_message_contents() from None
    if json in _ABSENT:
        raise missing_parameter("MessageBody")
    if json[0] != '"':
        raise unreadable("MessageBody must be a string")
    has_escapes = "\\" in json
    text = _text.decode(json) if has_escapes else json[1:-1]
    if has_escapes and _CODED.search(
        json
    ):  # without such escapes there is no need to scan every character
        if FORBIDDEN.search(text):
            raise _forbidden(text)
        if "\\u" in json:  # botocore escapes everything beyond ASCII, at up to three times the size
            json = _encode(text).decode()
    elif not json.isascii() and ("\ufffe" in json or "\uffff" in json):
        raise _forbidden(json)
    return Body(json, text.encode())


def render(stored: str) -> Body:
    """Render a stored body for SQS; one that is not a JSON string is returned as JSON text."""
    if stored[0] != '"':
        text = stored
    elif "\\" in stored:
        text = _text.decode(stored)
    else:
        return Body(stored, stored[1:-1].encode())
    utf8 = text.encode()
    return Body(stored if stored[0] == '"' else _encode(text).decode(), utf8)


def as_raw(body: Body) -> msgspec.Raw:
    """For `model.Message.Body`."""
    return msgspec.Raw(body.json)


def _forbidden(text: str) -> AwsError:
    found = FORBIDDEN.search(text)
    return invalid_message_contents(found.group() if found else None)


# --- digests: several SDKs recompute them and reject a message whose digest differs ---


def md5_of_body(utf8: bytes) -> str:
    return hashlib.md5(utf8, usedforsecurity=False).hexdigest()


def md5_of_attributes(attributes: Mapping[str, MessageAttributeValue] | None) -> str | None:
    """The MD5 of message attributes or message system attributes; None if there are none."""
    if not attributes:
        return None
    digest = hashlib.md5(usedforsecurity=False)
    for name in sorted(attributes):
        value = attributes[name]
        data_type = value.DataType or ""
        digest.update(_with_length(name.encode()) + _with_length(data_type.encode()))
        if data_type.startswith("Binary"):
            digest.update(_BINARY + _with_length(value.BinaryValue or b""))
        else:
            digest.update(_STRING + _with_length((value.StringValue or "").encode()))
    return digest.hexdigest()


def _with_length(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data
