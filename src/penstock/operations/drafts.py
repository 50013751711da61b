"""Convert drafts as clients send them into domain drafts."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import asdict

from penstock.api import messages
from penstock.domain.datetimes import parse_instant
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.draft import Draft

_anything = msgspec.json.Decoder()
_FIELDS = frozenset(Draft.__struct_fields__)


def draft_of(given: messages.Draft) -> Draft:
    """Raises InvalidRequest."""
    values: dict[str, Any] = asdict(given)
    values["body"] = text_of(given.body)
    if given.due_at is not None:
        values["due_at"] = parse_instant("due_at", given.due_at)
    if given.expires_at is not None:
        values["expires_at"] = parse_instant("expires_at", given.expires_at)
    if type(given) is not messages.Draft:  # a notification or an event has fields of its own
        values = {name: value for name, value in values.items() if name in _FIELDS}
    return Draft(**values)


def text_of(raw: msgspec.Raw) -> str:
    """Return JSON as the text sent; raises InvalidRequest if it cannot be decoded again."""
    try:
        text = str(raw, "utf-8")
        if text[0] != '"':
            # A number out of range would make every response that contains it unreadable.
            _anything.decode(text)
    except UnicodeDecodeError:
        raise InvalidRequest("the body is not valid UTF-8") from None
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"the body cannot be read: {error}") from None
    return text
