"""The Query protocol: inputs as form fields or in the query string, responses in XML.

Fields are converted to the JSON of the other protocol, so that both share their decoders.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from penstock.edge.server.request import Request, Response
from penstock.edge.sqs.errors import SqsError, invalid_action, invalid_value, serialization
from penstock.edge.sqs.rules.content import MAX_BYTES
from penstock.edge.sqs.wire.flat import QueryMember, is_struct, members
from penstock.edge.sqs.wire.model import Input, QueueInput, SqsOutput
from penstock.edge.sqs.wire.operations import ENVELOPE_BYTES, OPERATIONS, SqsOperation
from penstock.edge.sqs.wire.query_answers import json_answer, json_refusal, xml_answer, xml_refusal

FORM = b"application/x-www-form-urlencoded"
_XML = b"text/xml"
_JSON = b"application/json"
_NOT_ON_QUEUES = ("CreateQueue", "ListQueues")
_MAX_FIELDS = 5_000
_WHOLE = re.compile("-?[0-9]{1,18}")
_POSITION = re.compile("[0-9]{1,6}")
_NO_ESCAPE = re.compile(rb"%(?![0-9a-fA-F]{2})")
_MAX_MISTAKES = 10_000
_DEEPEST = 8  # SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.StringListValue.1
_HERE = "."  # key of a node's own value; names have no dots
_ALIASES = {"Tags": "Tags"}  # the Java SDKs send this name for TagQueue
_encode = msgspec.json.Encoder().encode

Node = dict[str, Any]  # of strings and nodes


class OperationMissing(SqsError):
    """The request names no operation."""

    def __init__(self) -> None:
        unknown = invalid_action("")
        super().__init__(unknown.shape, unknown.code, unknown.message, status=404)


class QueryProtocol:
    most_bytes = 3 * MAX_BYTES + ENVELOPE_BYTES  # %41

    def __init__(self, *, wants_json: bool = False) -> None:
        self._wants_json = wants_json

    def read(self, request: Request) -> tuple[SqsOperation, Input]:
        try:
            fields = _fields(request)
        except ValueError:
            raise serialization("The request's parameters cannot be read.") from None
        action = fields.get("Action")
        if action is None:
            raise OperationMissing
        operation = OPERATIONS.get(action)
        is_on_queue = bool(request.path.strip("/"))
        if operation is None or (is_on_queue and action in _NOT_ON_QUEUES):
            raise invalid_action(action[:200])
        given = _struct(operation.input_type, _tree(fields))
        if is_on_queue and issubclass(operation.input_type, QueueInput):
            given.setdefault("QueueUrl", request.path)
        return operation, operation.decode(_encode(given))

    def answer(
        self, operation: SqsOperation, output: SqsOutput | None, request_id: str
    ) -> Response:
        given = None if operation.output_type is None else output
        if self._wants_json:
            return _response(200, json_answer(operation.name, given, request_id), request_id)
        text = xml_answer(operation.name, given, request_id)
        return _response(200, text.encode(), request_id, _XML)

    def refuse(self, error: SqsError, request_id: str) -> Response:
        if isinstance(error, OperationMissing):
            return unknown_operation(request_id)
        if self._wants_json:
            return _response(error.status, json_refusal(error, request_id), request_id)
        text = xml_refusal(error, request_id)
        return _response(error.status, text.encode(), request_id, _XML)


def unknown_operation(request_id: str) -> Response:
    return _response(404, b"<UnknownOperationException/>", request_id, _XML)


def may_name(request: Request) -> bool:
    """Whether the request may have an Action; the body of an unknown caller is not read."""
    return bool(request.body and is_form(request)) or names_in_query(request)


def names_in_query(request: Request) -> bool:
    try:
        return "Action" in _parse(request.query_bytes)
    except ValueError:
        return True


def _fields(request: Request) -> dict[str, str]:
    """The fields of the query string and the form; raises ValueError if they are malformed."""
    found = _parse(request.query_bytes)
    if is_form(request):
        found |= _parse(request.body)
    return found


def is_form(request: Request) -> bool:
    media = request.headers.get(b"content-type", b"").partition(b";")[0]
    return media.strip().lower() == FORM


def _parse(data: bytes) -> dict[str, str]:
    if data.count(b"&") >= _MAX_FIELDS:
        raise ValueError
    pairs = (part.partition(b"=") for part in data.split(b"&") if part)
    return {_unquote(name): _unquote(value) for name, _, value in pairs}


def _unquote(data: bytes) -> str:
    """Like urllib's unquote, but fast: a request may consist of a megabyte of escapes.

    Some clients escape neither non-ASCII characters nor percent signs.
    """
    data = data.replace(b"+", b" ")
    if b"%" not in data:
        return data.decode()
    data = data.replace(b"\\", rb"\\")
    try:
        return _unescape(data)
    except ValueError:
        return _unescape(_NO_ESCAPE.sub(b"%25", data, count=_MAX_MISTAKES))


def _unescape(data: bytes) -> str:
    """Decode with the escapes of Python literals, whose decoder is fast."""
    return data.replace(b"%", rb"\x").decode("unicode_escape").encode("latin-1").decode()


def _response(status: int, body: bytes, request_id: str, media: bytes = _JSON) -> Response:
    headers = ((b"x-amzn-RequestId", request_id.encode()),)
    return Response(status, body, content_type=media, headers=headers)


# --- from flat names to the JSON of the other protocol ---


def _tree(fields: dict[str, str]) -> Node:
    root: Node = {}
    for name, value in fields.items():
        node = root
        parts = name.split(".", _DEEPEST)
        if len(parts) > _DEEPEST:
            continue  # no member is that deep
        for part in parts:
            node = node.setdefault(part, {})
        node[_HERE] = value
    return root


def _struct(kind: type[msgspec.Struct], node: Node) -> dict[str, Any]:
    found = ((member, _given(member, node)) for member in members(kind))
    return {member.name: _value(member, given) for member, given in found if given is not None}


def _given(member: QueryMember, node: Node) -> Node | None:
    given: Node | None = node.get(member.names.element)
    return node.get(_ALIASES.get(member.name, "")) if given is None else given


def _value(member: QueryMember, node: Node) -> Any:
    if member.kind is list:
        return [_single(member.inner, one, member.name) for one in _in_order(node)]
    if member.kind is dict:
        return dict(_entry(member, one) for one in _in_order(node))
    return _single(member.kind, node, member.name)


def _entry(member: QueryMember, node: Node) -> tuple[str, Any]:
    _, key, value = member.names
    empty = {_HERE: ""}
    name = node.get(key, empty).get(_HERE, "")
    return name, _single(member.inner, node.get(value, empty), member.name)


def _in_order(node: Node) -> list[Node]:
    """The entries of a flattened list by number; a single entry may have no number."""
    numbers = sorted((part for part in node if _POSITION.fullmatch(part)), key=int)
    return [node[number] for number in numbers] or [node]


def _single(kind: type, node: Node, name: str) -> Any:
    if is_struct(kind):
        return _struct(kind, node)
    text = node.get(_HERE, "")
    if kind is int:
        if not _WHOLE.fullmatch(text):
            raise invalid_value(text[:100], name, "Must be an integer.")
        return int(text)
    return text
