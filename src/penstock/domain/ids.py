"""Message ids: UUID version 7, so that ids sort by the time of sending."""

from __future__ import annotations


def uuid7(now: int, random_bits: int) -> str:
    """An id from an instant and 74 random bits."""
    value = (now & 0xFFFF_FFFF_FFFF) << 80
    value |= 0x7 << 76 | (random_bits >> 62 & 0xFFF) << 64
    value |= 0b10 << 62 | random_bits & 0x3FFF_FFFF_FFFF_FFFF
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
