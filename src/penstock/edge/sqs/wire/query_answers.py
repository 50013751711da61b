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

from penstock.edge.sqs.errors import SqsError
from penstock.edge.sqs.rules.body import FORBIDDEN
from penstock.edge.sqs.wire.flat import QueryMember, members

_START = '<?xml version="1.0"?>'
_XMLNS = 'xmlns="http://queue.amazonaws.com/doc/2012-11-05/"'
# XML parsers turn a bare carriage return into a line feed.
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;"}
_SPECIAL = re.compile('[&<>"\r]')
_text = msgspec.json.Decoder(str)


def xml_answer(operation: str, output: msgspec.Struct | None, request_id: str) -> str:
    """`output`: None for operations without a result."""
    result = "" if output is None else _element(f"{operation}Result", "".join(_fields(output)))
    return (
        f"{_START}<{operation}Response {_XMLNS}>{result}<ResponseMetadata>"
        f"<RequestId>{escape(request_id)}</RequestId></ResponseMetadata></{operation}Response>"
    )


def xml_refusal(error: SqsError, request_id: str) -> str:
    whose = "Sender" if error.sender else "Receiver"
    return (
        f"{_START}<ErrorResponse {_XMLNS}><Error><Type>{whose}</Type>"
        f"<Code>{escape(error.code)}</Code><Message>{escape(error.query_message)}</Message>"
        f"<Detail/></Error><RequestId>{escape(request_id)}</RequestId></ErrorResponse>"
    )


def escape(text: str) -> str:
    if not text.isprintable():  # other APIs accept characters that XML cannot represent
        text = FORBIDDEN.sub("\ufffd", text)
    return _SPECIAL.sub(lambda found: _ESCAPES[found.group()], text)


def _fields(struct: msgspec.Struct) -> Iterator[str]:
    for member in members(type(struct)):
        value = getattr(struct, member.name)
        if value is not None:
            yield from _repeat(member, value)


def _repeat(member: QueryMember, value: Any) -> Iterator[str]:
    element, key, content = member.names
    if member.kind is list:
        for one in value:
            yield _element(element, _inner(one))
    elif member.kind is dict:
        for name, one in value.items():
            pair = _element(key, escape(name)) + _element(content, _inner(one))
            yield _element(element, pair)
    else:
        yield _element(element, _inner(value))


def _element(name: str, inner: str) -> str:
    return f"<{name}>{inner}</{name}>" if inner else f"<{name}/>"


def _inner(value: Any) -> str:
    match value:
        case msgspec.Struct():
            return "".join(_fields(value))
        case bool():
            return "true" if value else "false"
        case bytes():
            return base64.b64encode(value).decode()
        case msgspec.Raw():
            return escape(_text.decode(value))
        case _:
            return escape(str(value))


_RENAMED = {"Messages": "messages", "QueueUrls": "queueUrls"}
_encode = msgspec.json.Encoder().encode


def json_answer(operation: str, output: msgspec.Struct | None, request_id: str) -> bytes:
    tree: dict[str, Any] = {}
    if output is not None:
        tree[f"{operation}Result"] = _tree(output)
    tree["ResponseMetadata"] = {"RequestId": request_id}
    return _encode({f"{operation}Response": tree})


def json_refusal(error: SqsError, request_id: str) -> bytes:
    described = {
        "Code": error.code,
        "Message": error.query_message,
        "Type": "Sender" if error.sender else "Receiver",
    }
    return _encode({"Error": described, "RequestId": request_id})


def _tree(value: Any) -> Any:
    if not isinstance(value, msgspec.Struct):
        return value
    tree: dict[str, Any] = {}
    for member in members(type(value)):
        given = getattr(value, member.name)
        _, key, content = member.names
        if member.kind is dict:
            pairs = (given or {}).items()
            given = [{key: name, content: _tree(one)} for name, one in pairs] or None
        elif member.kind is list:
            given = None if given is None else [_tree(one) for one in given]
        tree[_RENAMED.get(member.name, member.name)] = given
    return tree
