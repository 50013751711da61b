"""Convert drafts as clients send them into domain drafts."""

from __future__ import annotations

from operator import attrgetter

import msgspec

from penstock.api import messages
from penstock.domain.datetimes import parse_instant
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.draft import Draft

_anything = msgspec.json.Decoder()
_FIELDS = tuple(name for name in Draft.__struct_fields__ if name != "size")
_values = attrgetter(*_FIELDS)
_DUE, _EXPIRES = _FIELDS.index("due_at"), _FIELDS.index("expires_at")


def draft_of(given: messages.Draft) -> Draft:
    """Raises InvalidRequest."""
    # By position: keywords would cost more than the rest of a send's checks.
    values = list(_values(given))
    values[0] = text_of(given.body)
    if given.due_at is not None:
        values[_DUE] = parse_instant("due_at", given.due_at)
    if given.expires_at is not None:
        values[_EXPIRES] = parse_instant("expires_at", given.expires_at)
    return Draft(*values)


def text_of(raw: msgspec.Raw, what: str = "the body") -> str:
    """Return JSON as the text sent; raises InvalidRequest if it cannot be decoded again."""
    try:
        text = str(raw, "utf-8")
        if text[0] != '"':
            # A number out of range would make every response that contains it unreadable.
            _anything.decode(text)
    except UnicodeDecodeError:
        raise InvalidRequest(f"{what} is not valid UTF-8") from None
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{what} cannot be read: {error}") from None
    return text
