"""128-bit MurmurHash3 (x64 variant, seed 0), with which gateleen names its circuits.

Formatted as in Guava: both halves in little-endian byte order, as 32 hexadecimal digits.
"""

from __future__ import annotations

_MASK = 2**64 - 1
_C1 = 0x87C37B91114253D5
_C2 = 0x4CF5AD432745937F


def murmur3_128(data: bytes) -> str:
    h1 = h2 = 0
    whole = len(data) - len(data) % 16
    for start in range(0, whole, 16):
        h1 ^= _mix(int.from_bytes(data[start : start + 8], "little"), _C1, 31, _C2)
        h1 = (((_rotate(h1, 27) + h2) & _MASK) * 5 + 0x52DCE729) & _MASK
        h2 ^= _mix(int.from_bytes(data[start + 8 : start + 16], "little"), _C2, 33, _C1)
        h2 = (((_rotate(h2, 31) + h1) & _MASK) * 5 + 0x38495AB5) & _MASK
    h1 ^= _mix(int.from_bytes(data[whole : whole + 8], "little"), _C1, 31, _C2)
    h2 ^= _mix(int.from_bytes(data[whole + 8 :], "little"), _C2, 33, _C1)
    h1, h2 = h1 ^ len(data), h2 ^ len(data)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    h1, h2 = _finalize(h1), _finalize(h2)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    return (h1.to_bytes(8, "little") + h2.to_bytes(8, "little")).hex()


def _mix(k: int, before: int, rotation: int, after: int) -> int:
    return _rotate(k * before & _MASK, rotation) * after & _MASK


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK


def _finalize(h: int) -> int:
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & _MASK
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return h ^ h >> 33
