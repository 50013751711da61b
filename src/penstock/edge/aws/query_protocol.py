"""The Query protocol: inputs as form fields or in the query string, responses in XML.

Fields are converted to the JSON of the other protocol, so that both share their decoders.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import msgspec

from penstock.edge.aws.errors import AwsError, invalid_action, invalid_value, serialization
from penstock.edge.aws.flat import Dialect, QueryMember, is_struct, members
from penstock.edge.aws.operation import AwsOperation, AwsOutput, Input
from penstock.edge.aws.query_answers import json_answer, json_refusal, xml_answer, xml_refusal
from penstock.edge.server.request import Request, Response

FORM = b"application/x-www-form-urlencoded"
_XML = b"text/xml"
_JSON = b"application/json"
_MAX_FIELDS = 5_000
_WHOLE = re.compile("-?[0-9]{1,18}")
_POSITION = re.compile("[0-9]{1,6}")
_NO_ESCAPE = re.compile(rb"%(?![0-9a-fA-F]{2})")
_MAX_MISTAKES = 10_000
_DEEPEST = 8  # SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.StringListValue.1
_HERE = "."  # key of a node's own value; names have no dots
_encode = msgspec.json.Encoder().encode

Node = dict[str, Any]  # of strings and nodes


class OperationMissing(AwsError):
    """The request names no operation."""

    def __init__(self) -> None:
        unknown = invalid_action("")
        super().__init__(unknown.shape, unknown.code, unknown.message, status=404)


class QueryProtocol(ABC):
    """The protocol of one API."""

    dialect: ClassVar[Dialect]
    most_bytes: ClassVar[int]

    def __init__(self, *, wants_json: bool = False) -> None:
        self._wants_json = wants_json

    @abstractmethod
    def find(self, action: str, request: Request) -> AwsOperation | None:
        """The operation of this name, if the path of the request has it."""

    def complete(self, operation: AwsOperation, given: dict[str, Any], request: Request) -> None:
        """Add what the path says."""
        return

    def read(self, request: Request) -> tuple[AwsOperation, Input]:
        try:
            fields = _fields(request)
        except ValueError:
            raise serialization("The request's parameters cannot be read.") from None
        action = fields.get("Action")
        if action is None:
            raise OperationMissing
        operation = self.find(action, request)
        if operation is None:
            raise invalid_action(action[:200])
        given = _Reader(self.dialect).struct(operation.input_type, _tree(fields))
        self.complete(operation, given, request)
        return operation, operation.decode(_encode(given))

    def answer(
        self, operation: AwsOperation, output: AwsOutput | None, request_id: str
    ) -> Response:
        given = None if operation.output_type is None else output
        if self._wants_json:
            body = json_answer(self.dialect, operation.name, given, request_id)
            return _response(200, body, request_id)
        text = xml_answer(self.dialect, operation.name, given, request_id)
        return _response(200, text.encode(), request_id, _XML)

    def refuse(self, error: AwsError, request_id: str) -> Response:
        if isinstance(error, OperationMissing):
            return unknown_operation(request_id)
        if self._wants_json:
            return _response(error.status, json_refusal(error, request_id), request_id)
        text = xml_refusal(self.dialect, error, request_id)
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


class _Reader:
    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def struct(self, kind: type[msgspec.Struct], node: Node) -> dict[str, Any]:
        found = ((m, self._given(m, node)) for m in members(kind, self._dialect))
        return {m.name: self._value(m, given) for m, given in found if given is not None}

    def _given(self, member: QueryMember, node: Node) -> Node | None:
        given: Node | None = node
        for name in member.names.path:
            given = given.get(name) if given is not None else None
        return node.get(self._dialect.other_name(member.name)) if given is None else given

    def _value(self, member: QueryMember, node: Node) -> Any:
        if member.kind is list:
            return [self._single(member.inner, one, member.name) for one in _in_order(node)]
        if member.kind is dict:
            return dict(self._entry(member, one) for one in _in_order(node))
        return self._single(member.kind, node, member.name)

    def _entry(self, member: QueryMember, node: Node) -> tuple[str, Any]:
        _, key, value = member.names
        empty = {_HERE: ""}
        name = node.get(key, empty).get(_HERE, "")
        return name, self._single(member.inner, node.get(value, empty), member.name)

    def _single(self, kind: type, node: Node, name: str) -> Any:
        if is_struct(kind):
            return self.struct(kind, node)
        text = node.get(_HERE, "")
        if kind is int:
            if not _WHOLE.fullmatch(text):
                raise invalid_value(text[:100], name, "Must be an integer.")
            return int(text)
        return text


def _in_order(node: Node) -> list[Node]:
    """The entries of a flattened list by number; a single entry may have no number."""
    numbers = sorted((part for part in node if _POSITION.fullmatch(part)), key=int)
    return [node[number] for number in numbers] or [node]
