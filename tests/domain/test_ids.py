"""Message ids."""

import uuid

from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.ids import uuid7
from tests.clocks import NOON

INSTANTS = st.integers(0, 2**48 - 1)
BITS = st.integers(0, 2**74 - 1)


@given(now=INSTANTS, bits=BITS)
def test_an_id_is_a_uuid_of_version_7(now, bits):
    parsed = uuid.UUID(uuid7(now, bits))

    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)


@given(now=INSTANTS, bits=BITS)
def test_an_id_holds_the_instant_and_all_the_random_bits(now, bits):
    value = uuid.UUID(uuid7(now, bits)).int

    assert value >> 80 == now
    assert (value >> 64 & 0xFFF) << 62 | value & 2**62 - 1 == bits


@given(now=st.integers(0, 2**48 - 2), early=BITS, late=BITS)
def test_ids_sort_by_the_time_of_sending(now, early, late):
    assert uuid7(now, early) < uuid7(now + 1, late)


def test_an_id_looks_like_one():
    assert uuid7(NOON, 5) == "01ba5022-c200-7000-8000-000000000005"
