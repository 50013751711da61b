"""The one flipped bit behind a wrong checksum."""

from __future__ import annotations

import random

import pytest

from penstock.store.damage.page_sums import ZERO, flipped_bits, sums_of, with_bit_flipped


@pytest.mark.parametrize("is_big_endian", [False, True])
def test_a_flipped_bit_is_among_those_that_explain_the_sums(is_big_endian: bool) -> None:
    dice = random.Random(1)
    page = dice.randbytes(4096)
    stored = sums_of(page, (5, 7), is_big_endian=is_big_endian)
    for bit in dice.sample(range(4096 * 8), 40):
        damaged = with_bit_flipped(page, bit)
        found = sums_of(damaged, (5, 7), is_big_endian=is_big_endian)

        bits = flipped_bits(damaged, found, stored, is_big_endian=is_big_endian)

        assert bit in bits
        for one in bits:  # all of them explain the sums; which one it was is unknown
            better = with_bit_flipped(damaged, one)
            assert sums_of(better, (5, 7), is_big_endian=is_big_endian) == stored


def test_the_lower_bits_of_a_word_have_only_one_explanation() -> None:
    page = random.Random(2).randbytes(4096)
    for word in (0, 1, 511, 1023):
        for bit in (0, 7, 12, 22):
            damaged = with_bit_flipped(page, word * 32 + bit)

            assert flipped_bits(damaged, sums_of(damaged), sums_of(page)) == [word * 32 + bit]


def test_more_than_one_flipped_bit_has_no_explanation() -> None:
    page = random.Random(3).randbytes(4096)
    damaged = with_bit_flipped(with_bit_flipped(page, 5), 900)

    assert flipped_bits(damaged, sums_of(damaged, ZERO), sums_of(page)) == []
