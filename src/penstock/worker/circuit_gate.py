"""Circuits of jobs that name a route: asked before a job runs, and given its outcome.

    claimed ──▶ admit ──▶ run ──▶ end ──▶ report
                  └──▶ snoozed: the circuit is open, no attempt is spent

One request covers all jobs of a claim, and one covers all ended jobs.  Jobs without a route bypass
the gate.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from penstock.domain.circuit.circuit import OutcomeReport, Permit, PermitAnswer, RequestOutcome
from penstock.domain.errors import PenstockError, StoreUnavailable
from penstock.domain.message.lease import Verb
from penstock.worker.application import JobSource
from penstock.worker.claimed_job import ClaimedJob, JobAct
from penstock.worker.outcomes import NOT_COMMITTED

_log = logging.getLogger("penstock.worker")

_RECHECK_MS = 1_000  # time until the next request while no circuit is watched
_UNKNOWN_MS = 1_000  # how long jobs wait while the circuit state is unavailable
_MAX_UNREPORTED = 10_000


class CircuitGate:
    def __init__(self, source: JobSource) -> None:
        self._source = source
        self._permits: dict[str, PermitAnswer] = {}  # by receipt, for admitted jobs
        self._outcomes: list[OutcomeReport] = []  # not reported yet
        self._held: set[str] = set()  # routes logged as held
        self._ask_at = 0
        self._is_rejected = False

    def admit(self, jobs: Sequence[ClaimedJob], now: int) -> tuple[list[ClaimedJob], list[JobAct]]:
        """Return the jobs that may run, and an act for each of the others."""
        if now < self._ask_at:
            return list(jobs), []
        routes = {job.route: job.id for job in jobs if job.route is not None}
        try:
            permits = self._source.permits(routes)
        except (StoreUnavailable, OSError) as error:
            return _snooze_routed(jobs, error)
        except PenstockError as error:  # an older server, or a key without the role
            self._log_rejection(error)
            permits = None
        if permits is None:
            self._ask_at = now + _RECHECK_MS
            return list(jobs), []
        return self._sort(jobs, permits)

    def end(self, job: ClaimedJob, act: JobAct, now: int) -> JobAct:
        """Note the outcome; returns the act to send, because a failed probe loses no attempt."""
        answer = self._permits.pop(job.receipt, None)
        if answer is None:
            return act
        outcome = outcome_of(act)
        took_ms = now - job.started_at if job.started_at else 0
        self._outcomes.append(OutcomeReport(answer, job.id, outcome, took_ms))
        if outcome is RequestOutcome.FAILURE and answer.permit is Permit.PROBE:
            _log.info("the probe of route %r failed: %s", answer.pattern, act.text)
            return _snooze(job.receipt, answer.retry_ms, act.text)
        return act

    def lose(self, job: ClaimedJob) -> None:
        """Drop the permit of a job whose outcome is unknown."""
        answer = self._permits.pop(job.receipt, None)
        if answer is not None:
            self._outcomes.append(OutcomeReport(answer, job.id, None))

    def report(self) -> None:
        """Report outcomes; those that the store does not take are kept for the next step."""
        if not self._outcomes:
            return
        outcomes, self._outcomes = self._outcomes, []
        try:
            self._source.report(outcomes)
        except (StoreUnavailable, OSError):
            self._outcomes = outcomes[-_MAX_UNREPORTED:]
        except PenstockError as error:
            self._log_rejection(error)

    def _sort(
        self, jobs: Sequence[ClaimedJob], permits: Mapping[str, PermitAnswer]
    ) -> tuple[list[ClaimedJob], list[JobAct]]:
        admitted: list[ClaimedJob] = []
        snoozed: list[JobAct] = []
        probed: set[str] = set()
        for job in jobs:
            route = job.route
            answer = permits.get(route) if route is not None else None
            if answer is None:
                admitted.append(job)
            elif answer.permit is Permit.HOLD or answer.pattern in probed:
                text = f"the circuit of its route {route!r} is not closed"
                snoozed.append(_snooze(job.receipt, answer.wait_ms, text))
            else:
                if answer.permit is Permit.PROBE:
                    probed.add(answer.pattern)  # the others wait for the outcome of the probe
                self._permits[job.receipt] = answer
                admitted.append(job)
        self._log_held_routes(permits.values())
        return admitted, snoozed

    def _log_held_routes(self, permits: Iterable[PermitAnswer]) -> None:
        """Log once when a route is held and once when it is released, not for every job."""
        for one in permits:
            is_held = one.permit is Permit.HOLD
            if is_held and one.pattern not in self._held:
                self._held.add(one.pattern)
                _log.warning("snoozing jobs of route %r: its circuit is open", one.pattern)
            elif not is_held and one.pattern in self._held:
                self._held.discard(one.pattern)
                _log.info("trying jobs of route %r again", one.pattern)

    def _log_rejection(self, error: PenstockError) -> None:
        if not self._is_rejected:
            _log.warning("circuits are not checked: %s", error)
        self._is_rejected = True


def outcome_of(act: JobAct) -> RequestOutcome | None:
    """What the end of a job says about its route.

    None if the handler snoozed, cancelled or buried the job, which says nothing about the route.
    """
    match act.verb:
        case Verb.COMPLETE:
            return RequestOutcome.SUCCESS
        case Verb.FAIL if act.text == NOT_COMMITTED:  # the handler had finished with the route
            return RequestOutcome.SUCCESS
        case Verb.FAIL | Verb.TIME_OUT | Verb.CRASH:
            return RequestOutcome.FAILURE
    return None


def _snooze_routed(
    jobs: Sequence[ClaimedJob], error: Exception
) -> tuple[list[ClaimedJob], list[JobAct]]:
    _log.warning("circuit state unavailable; snoozing jobs that have a route: %s", error)
    # Not the error text itself, which may contain the database address: readers see `last_error`.
    text = "the state of its route's circuit is unavailable"
    admitted = [job for job in jobs if job.route is None]
    return admitted, [
        _snooze(job.receipt, _UNKNOWN_MS, text) for job in jobs if job.route is not None
    ]


def _snooze(receipt: str, delay_ms: int, text: str | None) -> JobAct:
    return JobAct(receipt=receipt, verb=Verb.SNOOZE, delay_ms=delay_ms, text=text)
