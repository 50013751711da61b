"""The checksums of SQLite's log and of its checksum VFS, and the search for a flipped bit.

Both run two sums over pairs of 32-bit words.  The sums are linear: one changed bit changes them by
a known multiple of a power of two, whatever the other words are.  So the position of a single
flipped bit follows from the difference between the stored and the computed sums.  For the upper
nine bits of a word there is more than one such position: their multiples repeat within a page.
"""

from __future__ import annotations

import sys
from array import array

Sums = tuple[int, int]

ZERO: Sums = (0, 0)
_MASK = 0xFFFFFFFF


def sums_of(data: bytes, seed: Sums = ZERO, *, is_big_endian: bool = False) -> Sums:
    """`data` has a multiple of eight bytes."""
    first, second = seed
    words = iter(_words(data, is_big_endian))
    for one, two in zip(words, words, strict=True):
        first = (first + one + second) & _MASK
        second = (second + two + first) & _MASK
    return first, second


def flipped_bits(
    data: bytes, found: Sums, stored: Sums, *, is_big_endian: bool = False
) -> list[int]:
    """The bits of `data` that, flipped alone, make its sums equal the stored ones.

    Bits are counted from the first byte, the least significant one of each byte first.
    """
    wanted = ((stored[0] - found[0]) & _MASK, (stored[1] - found[1]) & _MASK)
    words = _words(data, is_big_endian)
    odd, even = (
        (0, 1),
        (1, 1),
    )  # change of the sums if 1 is added to the last word, or the one before
    bits: list[int] = []
    for place in range(len(words) - 1, 0, -2):
        for index, effect in ((place, odd), (place - 1, even)):
            bit = _bit_of_word(words[index], effect, wanted)
            if bit >= 0:
                byte = 3 - bit // 8 if is_big_endian else bit // 8
                bits.append((index * 4 + byte) * 8 + bit % 8)
        odd, even = _one_pair_earlier(odd), _one_pair_earlier(even)
    return sorted(bits)


def with_bit_flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def is_one_bit_apart(one: Sums, other: Sums) -> bool:
    return sum((a ^ b).bit_count() for a, b in zip(one, other, strict=True)) == 1


def _bit_of_word(word: int, effect: Sums, wanted: Sums) -> int:
    for bit in range(32):
        change = -(1 << bit) if word >> bit & 1 else 1 << bit
        if (change * effect[0]) & _MASK == wanted[0] and (change * effect[1]) & _MASK == wanted[1]:
            return bit
    return -1


def _one_pair_earlier(effect: Sums) -> Sums:
    first = (effect[0] + effect[1]) & _MASK
    return first, (effect[1] + first) & _MASK


def _words(data: bytes, is_big_endian: bool) -> array[int]:
    words = array("I", data)
    if is_big_endian is (sys.byteorder == "little"):
        words.byteswap()
    return words
