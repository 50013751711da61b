"""The Query protocol: inputs as form fields or in the query string, answers in XML.

Fields become the JSON that the other protocol sends, so that both are read by the same decoders.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from penstock.edge.http.request import Request, Response
from penstock.edge.sqs import json_tree, xml
from penstock.edge.sqs.calls import OPERATIONS, Call, Operation
from penstock.edge.sqs.errors import SqsError, invalid_action, invalid_value, serialization
from penstock.edge.sqs.flat import Member, is_struct, members
from penstock.edge.sqs.model import Output, QueueInput

FORM = b"application/x-www-form-urlencoded"
_XML = b"text/xml"
_JSON = b"application/json"
_NOT_ON_QUEUES = ("CreateQueue", "ListQueues")
_MOST_FIELDS = 5_000
_WHOLE = re.compile("-?[0-9]{1,18}")
_POSITION = re.compile("[0-9]{1,6}")
_DEEPEST = 8  # SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.StringListValue.1
_HERE = "."  # the value of a field that has fields below it, too; no part of a name has a dot
_encode = msgspec.json.Encoder().encode

Node = dict[str, Any]  # of strings and nodes


class QueryProtocol:
    """Made for one request, from its fields; empty ones stand for what could not be read."""

    def __init__(self, fields: dict[str, str], *, wants_json: bool = False) -> None:
        self._fields = fields
        self._wants_json = wants_json

    def read(self, request: Request) -> Call:
        action = self._fields.get("Action")
        if action is None:
            raise serialization("The request's parameters cannot be read.")
        operation = OPERATIONS.get(action)
        is_on_queue = bool(request.path.strip("/"))
        if operation is None or (is_on_queue and action in _NOT_ON_QUEUES):
            raise invalid_action(action[:200])
        given = _struct(operation.takes, _tree(self._fields))
        if is_on_queue and issubclass(operation.takes, QueueInput):
            given.setdefault("QueueUrl", request.path)
        return Call(operation, operation.decode(_encode(given)))

    def answer(self, operation: Operation, output: Output | None, request_id: str) -> Response:
        given = None if operation.gives is None else output
        if self._wants_json:
            return _response(200, json_tree.answer(operation.name, given, request_id), request_id)
        text = xml.answer(operation.name, given, request_id)
        return _response(200, text.encode(), request_id, _XML)

    def refuse(self, error: SqsError, request_id: str) -> Response:
        if self._wants_json:
            return _response(error.status, json_tree.refusal(error, request_id), request_id)
        text = xml.refusal(error, request_id)
        return _response(error.status, text.encode(), request_id, _XML)


def fields(request: Request) -> dict[str, str]:
    """Of the query string and of a form; raises ValueError for what is malformed."""
    found = _parsed(request.query_bytes)
    if is_form(request):
        found |= _parsed(request.body)
    return found


def is_form(request: Request) -> bool:
    media = request.headers.get(b"content-type", b"").partition(b";")[0]
    return media.strip().lower() == FORM


def _parsed(data: bytes) -> dict[str, str]:
    # Some clients do not escape what lies beyond ASCII.
    pairs = parse_qsl(
        data.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
    )
    return dict(pairs)


def _response(status: int, body: bytes, request_id: str, media: bytes = _JSON) -> Response:
    headers = ((b"x-amzn-RequestId", request_id.encode()),)
    return Response(status, body, content_type=media, headers=headers)


# --- from flat names to what the JSON protocol would have sent ---


def _tree(fields: dict[str, str]) -> Node:
    root: Node = {}
    for name, value in fields.items():
        node = root
        parts = name.split(".")
        if len(parts) > _DEEPEST:
            continue  # it means nothing
        for part in parts:
            node = node.setdefault(part, {})
        node[_HERE] = value
    return root


def _struct(kind: type[msgspec.Struct], node: Node) -> dict[str, Any]:
    return {
        member.name: _value(member, node[member.names.element])
        for member in members(kind)
        if member.names.element in node
    }


def _value(member: Member, node: Node) -> Any:
    if member.kind is list:
        return [_single(member.inner, one, member.name) for one in _in_order(node)]
    if member.kind is dict:
        return dict(_entry(member, one) for one in _in_order(node))
    return _single(member.kind, node, member.name)


def _entry(member: Member, node: Node) -> tuple[str, Any]:
    _, key, value = member.names
    empty = {_HERE: ""}
    name = node.get(key, empty).get(_HERE, "")
    return name, _single(member.inner, node.get(value, empty), member.name)


def _in_order(node: Node) -> list[Node]:
    """The entries of a flattened list by their number; a single one may come without."""
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
