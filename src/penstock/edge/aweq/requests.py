"""Parse requests of AweQ clients, and decide which lease a DELETE ends.

A DELETE names only the message, not the consumer's checkout.  If a message was delivered once, the
DELETE can only mean that checkout.  After a redelivery it may come late, from a consumer whose
checkout has expired, so it counts only if the present lease holder sends it.  Consumers are
identified by the header X-Aweq-Consumer, or else by their address.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import msgspec

from penstock.domain.errors import InvalidRequest
from penstock.domain.message.lifecycle import Message, State
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


HEADER = b"x-aweq-consumer"
MAX_CHARS = 200
_NAMED = "aweq:"
_UNNAMED = "aweq@"


def consumer(request: Request) -> str:
    """The consumer of a request, in the form stored as `leased_by`."""
    name = request.headers.get(HEADER, b"").decode("latin-1")
    if len(name) > MAX_CHARS:
        raise InvalidRequest(f"X-Aweq-Consumer takes at most {MAX_CHARS} characters.")
    return f"{_NAMED}{name}" if name else f"{_UNNAMED}{request.client}"


def may_delete(message: Message, *, queue_no: int, asked_by: str) -> bool:
    """Whether a DELETE by this consumer ends the present lease of the message."""
    if message.state is not State.LEASED or message.queue_no != queue_no:
        return False
    held_by = message.leased_by or ""
    if not held_by.startswith((_NAMED, _UNNAMED)):
        return False  # claimed through another API, which requires a receipt
    return message.lease_no == 1 or held_by == asked_by
