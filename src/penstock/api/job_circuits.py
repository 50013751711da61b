"""The circuits of jobs: a worker asks before it runs them, and reports how they ended."""

from __future__ import annotations

from typing import Annotated, Literal, Self

import msgspec

from penstock.api.operation import (
    AnswerRecord,
    DurationMs,
    Id,
    Operation,
    RequestRecord,
    about,
    named,
)
from penstock.domain.access.api_key import Role
from penstock.domain.circuit.circuit import (
    OutcomeReport,
    Permit,
    PermitAnswer,
    RequestOutcome,
    circuit_hash,
)


class RouteNames(RequestRecord):
    routes: Annotated[list[str], about("The routes named by the jobs.")]
    ids: Annotated[
        list[str],
        about(
            "Ids of claimed jobs with these routes. Required if the key is limited to some queues."
        ),
    ] = msgspec.field(default_factory=list)


class RoutePermit(AnswerRecord, frozen=True, omit_defaults=True):
    """Whether jobs of a route may be run now."""

    route: Annotated[str, about("The route.")]
    permit: Annotated[
        Permit,
        about("`go`: run the jobs. `probe`: run one, whose outcome decides. `hold`: run none."),
    ]
    generation: Annotated[int, about("State generation; send it back with the outcome.")]
    wait_ms: Annotated[DurationMs, about("How long to postpone jobs that may not run now.")] = 0
    retry_ms: Annotated[
        DurationMs, about("How long to postpone a failed probe, which does not lose an attempt.")
    ] = 0

    @classmethod
    def of(cls, answer: PermitAnswer) -> Self:
        return cls.copy_of(answer, route=answer.pattern)

    @property
    def permit_answer(self) -> PermitAnswer:
        return _permit_answer(self, wait_ms=self.wait_ms, retry_ms=self.retry_ms)


class RoutePermits(AnswerRecord, frozen=True):
    is_watching: Annotated[
        bool, about("False if no circuit is watched. Then wait a second before you ask again.")
    ]
    permits: Annotated[list[RoutePermit], about("One permit per route.")]


class JobOutcome(RequestRecord, kw_only=True):
    route: Annotated[str, about("The route of the job.")]
    id: Annotated[Id, about("The id of the job. Several attempts of one job count once.")]
    outcome: Annotated[
        Literal["success", "failure"] | None,
        about("`success` or `failure`. Null if there is no outcome."),
    ]
    permit: Annotated[Permit, about("The permit that was granted for the route.")] = Permit.GO
    generation: Annotated[int, about("The generation returned with the permit.")] = -1
    took_ms: Annotated[DurationMs, about("How long the job ran.")] = 0

    @classmethod
    def of(cls, report: OutcomeReport) -> Self:
        return cls(
            route=report.permit_answer.pattern,
            id=report.request_id,
            outcome=None if report.outcome is None else report.outcome.value,
            permit=report.permit_answer.permit,
            generation=report.permit_answer.generation,
            took_ms=report.took_ms,
        )

    @property
    def report(self) -> OutcomeReport:
        outcome = None if self.outcome is None else RequestOutcome(self.outcome)
        return OutcomeReport(_permit_answer(self), self.id, outcome, self.took_ms)


def _permit_answer(of: RoutePermit | JobOutcome, **more: int) -> PermitAnswer:
    return PermitAnswer(
        permit=of.permit,
        pattern=of.route,
        hash=circuit_hash(of.route),
        generation=of.generation,
        is_of_table=False,
        **more,
    )


class JobOutcomes(RequestRecord):
    outcomes: Annotated[list[JobOutcome], about("The outcomes of jobs.")]


# Not repeated: a probe may have been granted with an answer that was lost.
PERMITS = named.post(
    "askCircuits",
    "/v1/circuits/permits",
    "Ask whether jobs of some routes may run now. A probe permits one job.",
    RoutePermits,
    role=Role.CONSUME,
    request=RouteNames,
    example={"routes": ["stripe"]},
)
OUTCOMES: Operation[None] = named.post(
    "tellCircuits",
    "/v1/circuits/outcomes",
    "Report the outcomes of jobs that were permitted to run.",
    role=Role.CONSUME,
    request=JobOutcomes,
    example={"outcomes": [{"route": "stripe", "id": "job-17", "outcome": "success"}]},
    status=204,
    is_idempotent=True,
)
