"""Signals: named events that waiting jobs continue after."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from penstock.api.messages import Body
from penstock.api.operation import (
    AnswerRecord,
    DurationMs,
    Instant,
    JsonIn,
    RequestRecord,
    about,
    named,
)
from penstock.domain.access.api_key import Role

SignalName = Annotated[str, about("The name of the signal.")]


class SendSignal(RequestRecord):
    body: Annotated[JsonIn | UnsetType, about("Any JSON value, for the jobs that wait.")] = UNSET
    keep_ms: Annotated[
        DurationMs | None,
        about("How long it is kept for waits that begin later. Defaults to 7 days."),
    ] = None


class Signal(AnswerRecord, frozen=True):
    name: SignalName
    body: Body
    at: Annotated[Instant, about("When it was sent.")]
    until_at: Annotated[Instant, about("Until when it is kept for waits that begin later.")]


class SentSignal(Signal, frozen=True):
    is_duplicate: Annotated[
        bool, about("True if a signal of this name is kept; that one is returned.")
    ]
    ended_waits: Annotated[int, about("How many messages waited for it.")]


SEND = named.post(
    "sendSignal",
    "/v1/signals/{signal}",
    "Send a signal: the jobs that wait for it continue. The first one of a name counts.",
    SentSignal,
    role=Role.PRODUCE,
    request=SendSignal,
    example={"body": {"by": "ada"}},
    status=201,
    also=(200,),
    is_idempotent=True,
)
GET = named.get(
    "getSignal",
    "/v1/signals/{signal}",
    "Retrieve a signal that is kept.",
    Signal,
)
