"""Cursors: opaque text that encodes where a page ended."""

from __future__ import annotations

import base64
import binascii

import msgspec

from penstock.domain.errors import InvalidRequest


def to_cursor(*place: int) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def from_cursor(text: str | None, size: int) -> tuple[int, ...] | None:
    """Decode a cursor; raises InvalidRequest for text that is not a cursor."""
    if not text:
        return None
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        place = msgspec.json.decode(raw, type=tuple[int, ...])
    except (binascii.Error, ValueError, msgspec.DecodeError, RecursionError):
        raise InvalidRequest("the cursor is not valid; use the `next` of a page") from None
    if len(place) != size or any(abs(number) > 2**62 for number in place):
        raise InvalidRequest("the cursor is not valid; use the `next` of a page")
    return place
