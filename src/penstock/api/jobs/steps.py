"""Durable steps of a message, recorded by its lease holder, and its waits for signals."""

from __future__ import annotations

from typing import Annotated

from penstock.api.jobs.signals import SignalName
from penstock.api.operation import (
    AnswerRecord,
    DurationMs,
    Instant,
    Json,
    JsonIn,
    Next,
    PageQuery,
    RequestRecord,
    about,
    named,
)
from penstock.domain.access.api_key import Role
from penstock.domain.errors import TooLarge

StepName = Annotated[str, about("The name of the step, unique within its message.")]
Outcome = Annotated[Json, about("Any JSON value.")]


class RecordStep(RequestRecord):
    name: StepName
    outcome: Annotated[JsonIn, about("Any JSON value: what later attempts get.")]
    took_ms: Annotated[
        DurationMs | None, about("How long it took, for the lake. Null: not measured.")
    ] = None


class Step(AnswerRecord, frozen=True):
    name: StepName
    outcome: Outcome
    at: Annotated[Instant, about("When it was recorded.")]


class RecordedStep(Step, frozen=True):
    is_new: Annotated[
        bool, about("False if a step of this name was recorded before; that one is returned.")
    ]


class Steps(AnswerRecord, frozen=True):
    steps: Annotated[list[Step], about("The steps, in the order in which they were recorded.")]
    next: Next


class PendingWait(AnswerRecord, frozen=True):
    signal: SignalName
    step: Annotated[str, about("The name of the step that the wait ends as.")]
    until_at: Annotated[Instant | None, about("When the wait times out.")]


class MessageSteps(Steps, frozen=True):
    waits: Annotated[list[PendingWait], about("The signals that the message waits for.")]


class BeginWait(RequestRecord):
    signal: Annotated[
        str | None, about("The name of the signal. Null: sleep for `timeout_ms`.")
    ] = None
    step: Annotated[
        str | None, about("The name of the step. Defaults to the name of the signal.")
    ] = None
    timeout_ms: Annotated[
        DurationMs | None, about("How long to wait. Null: until the signal arrives.")
    ] = None


class Wait(AnswerRecord, frozen=True):
    step: Annotated[
        Step | None,
        about(
            'The step, once it is recorded: `{"body": …}` of the signal, `{"timed_out": true}`, '
            'or `{"sleep_ms": …}`.'
        ),
    ]
    delay_ms: Annotated[
        int, about("How long to snooze the message, with `signal` if there is one. 0: it is over.")
    ]


RECORD = named.post(
    "recordStep",
    "/v1/leases/{receipt}/steps",
    "Record a step of a message. A name that is recorded already keeps its first outcome.",
    RecordedStep,
    role=Role.CONSUME,
    request=RecordStep,
    example={"name": "charge", "outcome": {"payment": 17}},
    errors=(TooLarge,),
    is_idempotent=True,
)
OF_LEASE = named.get(
    "listStepsOfLease",
    "/v1/leases/{receipt}/steps",
    "List the steps of a claimed message, for its lease holder.",
    Steps,
    role=Role.CONSUME,
    query=PageQuery,
)
WAIT = named.post(
    "waitForSignal",
    "/v1/leases/{receipt}/waits",
    "Wait for a signal or for some time. Unless it is over, snooze the message afterwards.",
    Wait,
    role=Role.CONSUME,
    request=BeginWait,
    example={"signal": "orders.17.approved", "timeout_ms": 604_800_000},
    errors=(TooLarge,),
    is_idempotent=True,
)
OF_MESSAGE = named.get(
    "listSteps",
    "/v1/messages/{id}/steps",
    "List the steps of a message, and the signals that it waits for.",
    MessageSteps,
    query=PageQuery,
)
