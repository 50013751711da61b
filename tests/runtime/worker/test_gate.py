"""What the end of a job says about its route."""

from __future__ import annotations

import pytest

from penstock.domain.circuit import Outcome
from penstock.domain.lease import Verb
from penstock.ports.work import WorkAct
from penstock.runtime.outcomes import NOT_COMMITTED
from penstock.runtime.worker.gate import outcome_of


@pytest.mark.parametrize(
    ("verb", "outcome"),
    [
        (Verb.COMPLETE, Outcome.SUCCESS),
        (Verb.FAIL, Outcome.FAILURE),
        (Verb.TIME_OUT, Outcome.FAILURE),
        (Verb.CRASH, Outcome.FAILURE),
        (Verb.SNOOZE, None),
        (Verb.CANCEL, None),
        (Verb.BURY, None),
        (Verb.RELEASE, None),
    ],
)
def test_only_what_was_done_or_failed_says_something(verb, outcome):
    assert outcome_of(WorkAct(receipt="r", verb=verb)) is outcome


def test_a_job_that_completed_itself_was_done_with_its_route():
    act = WorkAct(receipt="r", verb=Verb.FAIL, text=NOT_COMMITTED)

    assert outcome_of(act) is Outcome.SUCCESS
