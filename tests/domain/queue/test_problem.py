"""Old transactions: when they count as old, and how they are labelled."""

from penstock.domain.limits import MINUTE
from penstock.domain.queue.problem import OLD_TRANSACTION_AFTER, OldTransaction, TransactionKind
from tests.clocks import NOON


def test_a_transaction_is_old_after_a_minute():
    session = OldTransaction(TransactionKind.SESSION, 5, pid=7, since=NOON)

    assert not session.is_old(now=NOON + MINUTE - 1)
    assert session.is_old(now=NOON + MINUTE)


def test_a_slot_without_a_time_is_old_by_the_number_of_transactions_since():
    slots = [
        OldTransaction(TransactionKind.SLOT, number, name="standby_2")
        for number in (OLD_TRANSACTION_AFTER - 1, OLD_TRANSACTION_AFTER)
    ]

    assert [slot.is_old(now=NOON) for slot in slots] == [False, True]


def test_a_transaction_is_labelled_with_what_is_known_of_it():
    whole = OldTransaction(TransactionKind.SESSION, 1, pid=7, application="psql", user="ann")
    bare = OldTransaction(TransactionKind.PREPARED, 1, name="transfer-9")

    assert whole.label == "session 7 (application psql, user ann)"
    assert bare.label == "prepared transfer-9"
