"""What became of a message, and what its worker returned."""

from __future__ import annotations

from typing import Annotated

from penstock.api.messages import EndReason, FinishedAt, MessageId, ResultValue
from penstock.api.operation import (
    AnswerRecord,
    DurationMs,
    QueryRecord,
    about,
    named,
)
from penstock.domain.errors import TooManyWaiting
from penstock.domain.message.lifecycle import State


class Result(AnswerRecord, frozen=True, omit_defaults=True):
    id: MessageId
    state: Annotated[
        State, about("The state of the message; dead also for one in a dead-letter queue.")
    ]
    is_ended: Annotated[bool, about("Whether it is done, dead or cancelled.")]
    result: ResultValue = None
    error: Annotated[
        str | None, about("The error of the last failed attempt, if it is dead or cancelled.")
    ] = None
    reason: EndReason = None
    finished_at: FinishedAt = None


class Wait(QueryRecord):
    wait_ms: Annotated[DurationMs, about("How long to wait for the end of the message.")] = 0


GET = named.get(
    "getResult",
    "/v1/messages/{id}/result",
    "Retrieve the result of a message; waits up to `wait_ms` for its end.",
    Result,
    query=Wait,
    errors=(TooManyWaiting,),
)
