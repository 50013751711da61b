"""The JSON of the native API as clients send it.  Unknown fields are refused: typos are seen."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from penstock.domain.errors import InvalidRequest

T = TypeVar("T")


def decode(decoder: msgspec.json.Decoder[T], body: bytes | msgspec.Raw) -> T:
    """Raises InvalidRequest that says what is wrong and where."""
    try:
        return decoder.decode(body or b"{}")
    except msgspec.DecodeError as error:
        raise InvalidRequest(str(error)) from None
    except (RecursionError, UnicodeDecodeError):
        raise InvalidRequest("the JSON is nested too deeply or not valid UTF-8") from None
