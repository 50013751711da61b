"""Parse requests of AweQ clients: the message in a JSON or form body, and the count to claim."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import msgspec

from penstock.domain.errors import InvalidRequest
from penstock.edge.server.request import Request

_MAX_FIELDS = 1_000
_FALSY = (None, "", 0, False)


def read_message(request: Request) -> str:
    """Return the message as compact JSON; raises InvalidRequest if it is missing or empty."""
    media = request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if media == b"application/json":
        fields = _json_fields(request.body)
    elif media == b"application/x-www-form-urlencoded":
        fields = _form_fields(request.body)
    else:
        fields = {}
    value = fields.get("message")
    # Falsy in JavaScript; an empty list or object is not.
    if not isinstance(value, list | dict) and value in _FALSY:
        raise InvalidRequest("Message content required.")
    return msgspec.json.encode(value).decode()


def read_count(request: Request, *, most: int) -> int:
    """Return the parameter `count`, by default 1; ignores unknown parameters, as AweQ does."""
    try:
        query = parse_qs(request.query_bytes.decode("ascii"), max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise InvalidRequest("The query is malformed.") from None
    given = query.get("count", ["1"])
    text = given[0]
    is_number = len(given) == 1 and text.isascii() and text.isdigit() and len(text) < 10
    if not is_number or not 1 <= int(text) <= most:
        raise InvalidRequest(f"Count must be a whole number from 1 to {most}.")
    return int(text)


def _json_fields(body: bytes) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(body or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidRequest("Message body is not valid JSON.") from None
    return fields if isinstance(fields, dict) else {}


def _form_fields(body: bytes) -> dict[str, Any]:
    try:
        fields = parse_qs(
            body.decode("ascii"),
            keep_blank_values=True,
            max_num_fields=_MAX_FIELDS,
            errors="strict",
        )
    except ValueError:
        raise InvalidRequest("Message body is not a valid form.") from None
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}
