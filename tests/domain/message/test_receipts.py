"""Receipts: the proof of a lease that callers hold."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from penstock.domain.errors import LeaseLost
from penstock.domain.limits import MAX_INSTANT
from penstock.domain.message.lease import Lease, read_receipt, receipt

SECRET = b"s" * 32
LENGTH = 54
LEASES = st.builds(
    Lease,
    message_no=st.integers(0, 2**63 - 1),
    lease_no=st.integers(0, 2**32 - 1),
    queue_no=st.integers(0, 2**32 - 1),
    leased_at=st.integers(0, MAX_INSTANT),
)


@given(lease=LEASES)
def test_a_receipt_is_valid_for_the_lease_it_was_given_for(lease):
    assert read_receipt(receipt(lease, secret=SECRET), secret=SECRET) == lease


@given(lease=LEASES)
def test_a_receipt_can_be_part_of_a_url(lease):
    text = receipt(lease, secret=SECRET)

    assert len(text) == LENGTH
    assert text.replace("-", "").replace("_", "").isalnum()


def test_each_lease_has_a_receipt_of_its_own():
    one = Lease(1, 1, 1, 1)
    others = [replace(one, **{field: 2}) for field in Lease.__struct_fields__]

    assert len({receipt(lease, secret=SECRET) for lease in (one, *others)}) == 5


@given(
    text=st.text(max_size=70) | st.text("ABCDEFxyz019-_=", min_size=LENGTH - 2, max_size=LENGTH + 2)
)
def test_whatever_no_claim_has_given_is_a_lost_lease(text):
    with pytest.raises(LeaseLost):
        read_receipt(text, secret=SECRET)


@given(lease=LEASES, cut=st.integers(0, LENGTH - 1))
def test_a_truncated_receipt_is_a_lost_lease(lease, cut):
    with pytest.raises(LeaseLost):
        read_receipt(receipt(lease, secret=SECRET)[:cut], secret=SECRET)


@given(lease=LEASES, place=st.integers(0, LENGTH - 1), letter=st.characters())
def test_a_changed_receipt_is_never_valid_for_another_lease(lease, place, letter):
    text = receipt(lease, secret=SECRET)
    changed = text[:place] + letter + text[place + 1 :]

    try:
        read = read_receipt(changed, secret=SECRET)
    except LeaseLost:
        return

    # The last letter holds spare bits; a change of those changes nothing.
    assert read == lease


@given(lease=LEASES)
def test_a_receipt_with_any_bit_turned_is_a_lost_lease(lease):
    raw = base64.urlsafe_b64decode(receipt(lease, secret=SECRET) + "==")

    for bit in range(len(raw) * 8):
        turned = int.from_bytes(raw, "big") ^ 1 << bit
        forged = base64.urlsafe_b64encode(turned.to_bytes(len(raw), "big")).decode().rstrip("=")
        with pytest.raises(LeaseLost):
            read_receipt(forged, secret=SECRET)


@given(lease=LEASES)
def test_a_receipt_signed_by_another_store_is_a_lost_lease(lease):
    with pytest.raises(LeaseLost):
        read_receipt(receipt(lease, secret=b"t" * 32), secret=SECRET)
