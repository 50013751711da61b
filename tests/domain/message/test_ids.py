"""Message ids."""

import uuid

from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.message.draft import uuid7
from tests.clocks import NOON

INSTANTS = st.integers(0, 2**48 - 1)
DIGITS = st.text("0123456789abcdef", min_size=19, max_size=19)


@given(now=INSTANTS, digits=DIGITS)
def test_an_id_is_a_uuid_of_version_7(now, digits):
    parsed = uuid.UUID(uuid7(now, digits))

    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)


@given(now=INSTANTS, digits=DIGITS)
def test_an_id_holds_the_instant_and_all_the_random_bits(now, digits):
    value = uuid.UUID(uuid7(now, digits)).int
    drawn = int(digits, 16)

    assert value >> 80 == now
    # The two highest bits of the fourth digit give way to the mark of the variant.
    assert value >> 64 & 0xFFF == drawn >> 64
    assert value & 2**62 - 1 == drawn & 2**62 - 1


@given(now=st.integers(0, 2**48 - 2), early=DIGITS, late=DIGITS)
def test_ids_sort_by_the_time_of_sending(now, early, late):
    assert uuid7(now, early) < uuid7(now + 1, late)


def test_an_id_is_a_uuid():
    assert uuid7(NOON, f"{5:019x}") == "01ba5022-c200-7000-8000-000000000005"
