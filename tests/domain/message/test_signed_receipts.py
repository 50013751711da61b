"""Receipts that this process has signed need no check; all others are checked."""

import pytest

from penstock.domain.errors import LeaseLost
from penstock.domain.message import lease
from penstock.domain.message.lease import Lease, Receipts
from tests.factories import a_leased_message

SECRET = b"secret"


@pytest.fixture
def message():
    return a_leased_message()


def test_a_receipt_is_read_by_the_process_that_signed_it_and_by_others(message):
    signer = Receipts(SECRET)

    receipt = signer.sign(message)

    assert signer.read(receipt) == Lease.of(message)
    assert Receipts(SECRET).read(receipt) == Lease.of(message)


def test_a_forged_receipt_is_not_read(message):
    forged = Receipts(b"another secret").sign(message)
    signer = Receipts(SECRET)
    signer.sign(message)

    with pytest.raises(LeaseLost):
        signer.read(forged)


def test_the_process_does_not_remember_all_receipts_it_has_signed(message, monkeypatch):
    monkeypatch.setattr(lease, "MAX_REMEMBERED", 10)
    signer = Receipts(SECRET)

    signed = [signer.sign(message) for _ in range(11)]
    later = [signer.sign(a_leased_message(message_no=no)) for no in range(2, 30)]

    assert len(signer._signed) <= 10
    assert [signer.read(receipt).message_no for receipt in later] == list(range(2, 30))
    assert {signer.read(receipt) for receipt in signed} == {Lease.of(message)}
