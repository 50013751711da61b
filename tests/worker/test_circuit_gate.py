"""Which outcome a finished job reports for its route."""

from __future__ import annotations

import pytest

from penstock.domain.circuit.circuit import RequestOutcome
from penstock.domain.errors import StoreUnavailable
from penstock.domain.message.lease import Verb
from penstock.worker.circuit_gate import CircuitGate, outcome_of
from penstock.worker.claimed_job import JobAct
from penstock.worker.outcomes import NOT_COMMITTED
from tests.worker.test_outcomes import AHandler, some_job


@pytest.mark.parametrize(
    ("verb", "outcome"),
    [
        (Verb.COMPLETE, RequestOutcome.SUCCESS),
        (Verb.FAIL, RequestOutcome.FAILURE),
        (Verb.TIME_OUT, RequestOutcome.FAILURE),
        (Verb.CRASH, RequestOutcome.FAILURE),
        (Verb.SNOOZE, None),
        (Verb.CANCEL, None),
        (Verb.BURY, None),
        (Verb.RELEASE, None),
    ],
)
def test_only_completed_and_failed_jobs_are_outcomes(verb, outcome):
    assert outcome_of(JobAct(receipt="r", verb=verb)) is outcome


def test_jobs_wait_while_circuits_cannot_be_asked_and_the_stores_address_stays_secret(caplog):
    class Broken:
        def permits(self, routes):
            raise StoreUnavailable("cannot reach db.internal:5432")

    jobs = [
        some_job(receipt=receipt, route=route, handler=AHandler())
        for receipt, route in (("a", "stripe"), ("b", None))
    ]

    go, held = CircuitGate(Broken()).admit(jobs, 0)  # type: ignore[arg-type]

    assert [one.receipt for one in go] == ["b"]
    [act] = held
    assert (act.receipt, act.verb) == ("a", Verb.SNOOZE)
    assert act.text == "the state of its route's circuit is unavailable"
    assert "db.internal:5432" in caplog.text, "for the operator"


def test_a_job_that_completed_itself_was_done_with_its_route():
    act = JobAct(receipt="r", verb=Verb.FAIL, text=NOT_COMMITTED)

    assert outcome_of(act) is RequestOutcome.SUCCESS
