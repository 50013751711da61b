"""Message ids: UUID version 7, so that ids sort by the time of sending."""

from __future__ import annotations

from functools import lru_cache

ID_DIGITS = 19  # random hexadecimal digits that an id takes
ID_CHARS = 36

# The first digit of the fourth group also encodes the UUID variant: 10xx in binary.
_VARIANT = {digit: "89ab"[int(digit, 16) & 0b11] for digit in "0123456789abcdef"}


def uuid7(now: int, digits: str) -> str:
    """An id from an instant and 19 random hexadecimal digits."""
    variant = _VARIANT[digits[3]]
    return f"{_stamp(now)}{digits[:3]}-{variant}{digits[4:7]}-{digits[7:]}"


@lru_cache(maxsize=16)  # the messages of a batch have the same instant
def _stamp(now: int) -> str:
    stamp = f"{now & 0xFFFF_FFFF_FFFF:012x}"
    return f"{stamp[:8]}-{stamp[8:]}-7"
