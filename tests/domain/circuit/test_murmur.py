"""Circuits have the same names as in gateleen."""

from __future__ import annotations

import pytest

from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.circuit.murmur import murmur3_128

# Published with Guava's own tests, whose halves are written with their lowest byte first.
VECTORS = {
    b"": "00000000000000000000000000000000",
    b"abc": "6778ad3f3f3f96b4522dca264174a23b",
    b"The quick brown fox jumps over the lazy dog": "6c1b07bc7bbc4be347939ac4a93c437a",
}


@pytest.mark.parametrize(("data", "wanted"), VECTORS.items())
def test_the_hash_is_the_one_that_others_compute(data: bytes, wanted: str) -> None:
    assert murmur3_128(data) == wanted


@pytest.mark.parametrize("length", range(40))
def test_every_length_has_a_hash_of_its_own(length: int) -> None:
    longer, shorter = murmur3_128(b"x" * (length + 1)), murmur3_128(b"x" * length)

    assert longer != shorter
    assert len(longer) == len(shorter) == 32


def test_blanks_around_a_pattern_do_not_count() -> None:
    assert circuit_hash(" /a/(.*)\n") == circuit_hash("/a/(.*)") == murmur3_128(b"/a/(.*)")
    assert circuit_hash("/ü/(.*)") == murmur3_128("/ü/(.*)".encode())
    assert circuit_hash("/a/(.*)") != circuit_hash("/b/(.*)")
