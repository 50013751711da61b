"""Query responses as JSON, for clients that accept it: the same tree as the XML.

Members without a value are null, two lists have different names, and maps are lists of pairs.
"""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.edge.sqs.errors import SqsError
from penstock.edge.sqs.wire.flat import members

_RENAMED = {"Messages": "messages", "QueueUrls": "queueUrls"}
_encode = msgspec.json.Encoder().encode


def answer(operation: str, output: msgspec.Struct | None, request_id: str) -> bytes:
    tree: dict[str, Any] = {}
    if output is not None:
        tree[f"{operation}Result"] = _tree(output)
    tree["ResponseMetadata"] = {"RequestId": request_id}
    return _encode({f"{operation}Response": tree})


def refusal(error: SqsError, request_id: str) -> bytes:
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
