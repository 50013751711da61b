"""Responses of the Query protocol: XML, or the same tree as JSON for clients that accept it.

XML has no white space between elements.  In JSON members without a value are null, two lists have
different names, and maps are lists of pairs.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from penstock.edge.aws.characters import FORBIDDEN
from penstock.edge.aws.errors import AwsError
from penstock.edge.aws.flat import Dialect, QueryMember, members

_START = '<?xml version="1.0"?>'
# XML parsers turn a bare carriage return into a line feed.
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;"}
_SPECIAL = re.compile('[&<>"\r]')
_text = msgspec.json.Decoder(str)


def xml_answer(
    dialect: Dialect, operation: str, output: msgspec.Struct | None, request_id: str
) -> str:
    """`output`: None for operations without a result."""
    fields = "" if output is None else "".join(_fields(output, dialect))
    result = "" if output is None else _element(f"{operation}Result", fields)
    return (
        f'{_START}<{operation}Response xmlns="{dialect.namespace}">{result}<ResponseMetadata>'
        f"<RequestId>{escape(request_id)}</RequestId></ResponseMetadata></{operation}Response>"
    )


def xml_refusal(dialect: Dialect, error: AwsError, request_id: str) -> str:
    whose = "Sender" if error.sender else "Receiver"
    return (
        f'{_START}<ErrorResponse xmlns="{dialect.namespace}"><Error><Type>{whose}</Type>'
        f"<Code>{escape(error.code)}</Code><Message>{escape(error.query_message)}</Message>"
        f"<Detail/></Error><RequestId>{escape(request_id)}</RequestId></ErrorResponse>"
    )


def escape(text: str) -> str:
    if not text.isprintable():  # other APIs accept characters that XML cannot represent
        text = FORBIDDEN.sub("\ufffd", text)
    return _SPECIAL.sub(lambda found: _ESCAPES[found.group()], text)


def _fields(struct: msgspec.Struct, dialect: Dialect) -> Iterator[str]:
    for member in members(type(struct), dialect):
        value = getattr(struct, member.name)
        if value is not None:
            *around, element = member.names.path
            repeated = _repeat(member, element, value, dialect)
            if around:
                yield _element(around[0], "".join(repeated))
            else:
                yield from repeated


def _repeat(member: QueryMember, element: str, value: Any, dialect: Dialect) -> Iterator[str]:
    _, key, content = member.names
    if member.kind is list:
        for one in value:
            yield _element(element, _inner(one, dialect))
    elif member.kind is dict:
        for name, one in value.items():
            pair = _element(key, escape(name)) + _element(content, _inner(one, dialect))
            yield _element(element, pair)
    else:
        yield _element(element, _inner(value, dialect))


def _element(name: str, inner: str) -> str:
    return f"<{name}>{inner}</{name}>" if inner else f"<{name}/>"


def _inner(value: Any, dialect: Dialect) -> str:
    match value:
        case msgspec.Struct():
            return "".join(_fields(value, dialect))
        case bool():
            return "true" if value else "false"
        case bytes():
            return base64.b64encode(value).decode()
        case msgspec.Raw():
            return escape(_text.decode(value))
        case _:
            return escape(str(value))


_encode = msgspec.json.Encoder().encode


def json_answer(
    dialect: Dialect, operation: str, output: msgspec.Struct | None, request_id: str
) -> bytes:
    tree: dict[str, Any] = {}
    if output is not None:
        tree[f"{operation}Result"] = _tree(output, dialect)
    tree["ResponseMetadata"] = {"RequestId": request_id}
    return _encode({f"{operation}Response": tree})


def json_refusal(error: AwsError, request_id: str) -> bytes:
    described = {
        "Code": error.code,
        "Message": error.query_message,
        "Type": "Sender" if error.sender else "Receiver",
    }
    return _encode({"Error": described, "RequestId": request_id})


def _tree(value: Any, dialect: Dialect) -> Any:
    if not isinstance(value, msgspec.Struct):
        return value
    tree: dict[str, Any] = {}
    for member in members(type(value), dialect):
        given = getattr(value, member.name)
        _, key, content = member.names
        if member.kind is dict:
            pairs = (given or {}).items()
            given = [{key: name, content: _tree(one, dialect)} for name, one in pairs] or None
        elif member.kind is list:
            given = None if given is None else [_tree(one, dialect) for one in given]
        tree[dialect.json_name(member.name)] = given
    return tree
