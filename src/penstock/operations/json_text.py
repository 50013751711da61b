"""JSON values that are stored as the text they were sent as."""

from __future__ import annotations

import msgspec

from penstock.domain.errors import InvalidRequest

_anything = msgspec.json.Decoder()


def text_of(raw: msgspec.Raw) -> str:
    """Raises InvalidRequest if the value cannot be decoded again."""
    try:
        text = str(raw, "utf-8")
        if text[0] != '"':
            # A number that no program can hold would spoil the answer that it is put into.
            _anything.decode(text)
    except UnicodeDecodeError:
        raise InvalidRequest("the body is not valid UTF-8") from None
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"the body cannot be read: {error}") from None
    return text
