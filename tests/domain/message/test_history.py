"""What history records of attempts, and which filters are valid."""

import pytest

from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import MINUTE
from penstock.domain.message.history import (
    OUTCOME_OF,
    Attempt,
    AttemptOutcome,
    HistoryFilter,
    attempt,
    check_filter,
)
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import LEASE_EXPIRED, State
from tests.clocks import NOON
from tests.factories import a_leased_message


def test_an_attempt_records_who_had_which_lease_from_when_to_when_and_what_went_wrong():
    message = a_leased_message(lease_no=4)

    ended = attempt(message, AttemptOutcome.FAILED, now=NOON + MINUTE, error="boom")

    assert ended == Attempt(
        id=message.id,
        message_no=message.message_no,
        queue_no=1,
        lease_no=4,
        outcome=AttemptOutcome.FAILED,
        leased_at=NOON,
        ended_at=NOON + MINUTE,
        leased_by="worker-1",
        error="boom",
    )


def test_an_expired_lease_has_its_own_error():
    ended = attempt(a_leased_message(), AttemptOutcome.EXPIRED, now=NOON)

    assert ended.error == LEASE_EXPIRED


def test_acts_that_finish_a_message_or_keep_the_lease_leave_no_attempt():
    assert set(Verb) - OUTCOME_OF.keys() == {
        Verb.COMPLETE,
        Verb.EXTEND,
        Verb.BURY,
        Verb.CANCEL,
    }


@pytest.mark.parametrize("outcome", [None, State.DONE, State.DEAD, State.CANCELLED])
def test_history_may_be_asked_for_any_outcome(outcome):
    wanted = HistoryFilter(outcome=outcome, limit=10)

    assert check_filter(wanted, max_limit=10) is wanted


@pytest.mark.parametrize(
    "wanted",
    [
        HistoryFilter(limit=0),
        HistoryFilter(limit=11),
        HistoryFilter(limit=1, outcome=State.READY),
        HistoryFilter(limit=1, outcome=State.LEASED),
    ],
)
def test_an_invalid_filter_of_history_is_rejected(wanted):
    with pytest.raises(InvalidRequest):
        check_filter(wanted, max_limit=10)
