"""The hierarchy of errors."""

from collections import Counter

import pytest

from penstock.domain import errors
from penstock.domain.errors import LeaseLost, PenstockError, QueueNotFound, all_errors


def test_every_error_is_found_from_the_root():
    classes = {
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, PenstockError)
        if "code" in vars(value)  # finer ones share the code of the error that they refine
    }

    assert set(all_errors()) == classes


def test_no_two_errors_share_a_code():
    counts = Counter(error.code for error in all_errors())

    assert [code for code, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("error", all_errors())
def test_every_class_says_its_own_code_in_plain_words(error):
    assert "code" in vars(error)
    assert error.code.replace("_", "").isalpha()
    assert error.code.islower()


def test_a_stale_lease_names_its_message_if_it_is_known():
    assert str(LeaseLost("m1")) == "the lease on message m1 has ended"
    assert str(LeaseLost()) == "the lease has ended"


def test_a_missing_queue_is_named():
    assert str(QueueNotFound("mial")) == "queue 'mial' does not exist"
