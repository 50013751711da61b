"""Claims, and acts on leases."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import msgspec
from msgspec import UNSET

from penstock.api.messages import Acted, Message
from penstock.api.operation import (
    AnswerRecord,
    DurationMs,
    JsonIn,
    Operation,
    Positive,
    RequestRecord,
    about,
    named,
    one_of,
    post,
)
from penstock.domain.access.api_key import Role
from penstock.domain.errors import ClaimNotRepeatable, PenstockError, TooManyWaiting
from penstock.domain.message.lease import Verb

NO_RESULT = UNSET  # unlike null, which is a result


class Claim(RequestRecord):
    limit: Annotated[Positive, about("The maximum number of messages.")] = 1
    wait_ms: Annotated[
        DurationMs | None,
        about("How long to wait for the first message. Defaults to the queue's `wait_ms`."),
    ] = None
    lease_ms: Annotated[
        DurationMs | None, about("The length of the lease. Defaults to the queue's `lease_ms`.")
    ] = None
    claimed_by: Annotated[
        str | None, about("The name or id of the worker, shown to operators.")
    ] = None
    in_a_row: Annotated[
        bool, about("Claim consecutive messages of one group, in a queue ordered by group.")
    ] = False
    claim_key: Annotated[
        str | None,
        about("Makes the claim repeatable: the same key returns the same messages for 5 minutes."),
    ] = None
    complete: Annotated[
        list[str], about("Receipts of this queue to complete first, in the same transaction.")
    ] = msgspec.field(default_factory=list)
    results: Annotated[
        dict[str, JsonIn], about("Results of receipts in `complete`: any JSON values.")
    ] = msgspec.field(default_factory=dict)
    kinds: Annotated[
        tuple[str, ...] | None,
        about("Only messages of these kinds, at most 100. Not together with `in_a_row`."),
    ] = None


class ClaimOptions(TypedDict, total=False):
    """The same fields as keyword arguments, except `complete` and `results`."""

    limit: int
    wait_ms: int | None
    lease_ms: int | None
    claimed_by: str | None
    in_a_row: bool
    claim_key: str | None
    kinds: tuple[str, ...] | None


_ACT_RESULT = one_of("Acted", "ErrorAnswer")


class Claimed(AnswerRecord, frozen=True, omit_defaults=True):
    messages: Annotated[list[Message], about("The messages, each with a receipt.")]
    completed: Annotated[
        list[Annotated[Any, _ACT_RESULT]],
        about("One result per receipt in `complete`, in the same order."),
    ] = msgspec.field(default_factory=list)


class ActFields(RequestRecord, kw_only=True):
    """The fields of all acts; each verb takes some of them."""

    error: Annotated[str | None, about("What went wrong (fail, time_out, crash).")] = None
    reason: Annotated[str | None, about("Why, for the history (bury, cancel, snooze).")] = None
    retry_in_ms: Annotated[
        DurationMs | None,
        about("The delay before the retry (fail, time_out). Defaults to the queue's back-off."),
    ] = None
    delay_ms: Annotated[
        DurationMs | None, about("The delay before it can be claimed again (release, snooze).")
    ] = None
    lease_ms: Annotated[
        DurationMs | None,
        about(
            "The new length of the lease, from now (extend). Defaults to the queue's `lease_ms`."
        ),
    ] = None
    is_late_ok: Annotated[
        bool | None,
        about("Accept an expired lease, unless the message was claimed again (complete, extend)."),
    ] = None
    is_start: Annotated[bool | None, about("Start the timeout of the attempt now (extend).")] = None
    progress: Annotated[Any, about("Any JSON value, shown until the next attempt (extend).")] = None
    result: Annotated[JsonIn, about("Any JSON value, kept with the history (complete).")] = (
        NO_RESULT
    )
    signal: Annotated[
        str | None,
        about("A signal it waits for: it is due when that arrives, or after the delay (snooze)."),
    ] = None


class ActOptions(TypedDict, total=False):
    """The same fields as keyword arguments."""

    error: str | None
    reason: str | None
    retry_in_ms: int | None
    delay_ms: int | None
    lease_ms: int | None
    is_late_ok: bool | None
    is_start: bool | None
    progress: Any
    result: Any
    signal: str | None


FIELDS_OF: dict[Verb, tuple[str, ...]] = {
    Verb.COMPLETE: ("is_late_ok", "result"),
    Verb.FAIL: ("error", "retry_in_ms"),
    Verb.RELEASE: ("delay_ms",),
    Verb.EXTEND: ("lease_ms", "is_late_ok", "is_start", "progress"),
    Verb.SNOOZE: ("delay_ms", "reason", "signal"),
    Verb.BURY: ("reason",),
    Verb.CANCEL: ("reason",),
    Verb.TIME_OUT: ("error", "retry_in_ms"),
    Verb.CRASH: ("error",),
}


class BatchAct(ActFields):
    receipt: Annotated[str, about("The receipt of the claimed message.")]
    act: Annotated[Verb, about("The act. Its own operation describes the fields it accepts.")]


class Acts(RequestRecord):
    acts: Annotated[list[BatchAct], about("The acts; each has its own result.")]


class ActResults(AnswerRecord, frozen=True):
    results: Annotated[
        list[Annotated[Any, _ACT_RESULT]], about("One result per act, in the same order.")
    ]


ActResult = Acted | PenstockError  # the result of one act in a batch, as clients return it


def _body_of(verb: Verb) -> type[msgspec.Struct]:
    """Build the record type with the fields of one verb."""
    types = {field.name: field.type for field in msgspec.structs.fields(ActFields)}
    fields: list[Any] = [(name, types[name], _default_of(name)) for name in FIELDS_OF[verb]]
    if verb is Verb.SNOOZE:
        fields[0] = ("delay_ms", Annotated[DurationMs, about("How long to postpone it.")])
    name = verb.value.title().replace("_", "")
    return msgspec.defstruct(name, fields, bases=(RequestRecord,))


def _default_of(name: str) -> object:
    return NO_RESULT if name == "result" else None


def _act(verb: Verb, summary: str, example: object) -> Operation[Acted]:
    first, *others = verb.value.split("_")
    return named.post(
        "".join([first, *(part.capitalize() for part in others), "Message"]),
        "/v1/leases/{receipt}/" + verb.value,
        summary,
        Acted,
        role=Role.CONSUME,
        request=_body_of(verb),
        example=example,
    )


CLAIM = post(
    "claimMessages",
    "/v1/queues/{queue}/claims",
    "Claim messages under a lease; waits up to `wait_ms` for the first.",
    Claimed,
    role=Role.CONSUME,
    request=Claim,
    example={"limit": 10, "wait_ms": 1_000, "claimed_by": "worker-1"},
    errors=(ClaimNotRepeatable, TooManyWaiting),
)
ACT_BATCH = named.post(
    "actOnLeases",
    "/v1/leases/batch",
    "Apply several acts to leases in one transaction. Each act has its own result.",
    ActResults,
    role=Role.CONSUME,
    request=Acts,
    example={"acts": [{"receipt": "$RECEIPT", "act": "complete"}]},
)
ACTS = {
    Verb.COMPLETE: _act(Verb.COMPLETE, "Complete a message.", {"result": {"total": 17}}),
    Verb.FAIL: _act(
        Verb.FAIL,
        "Report a failed attempt. The message is retried later, or dies if no attempt is left.",
        {"error": "the mail server does not answer", "retry_in_ms": 60_000},
    ),
    Verb.RELEASE: _act(
        Verb.RELEASE, "Return a message to its queue; the attempt does not count.", {"delay_ms": 0}
    ),
    Verb.EXTEND: _act(
        Verb.EXTEND,
        "Extend a lease from now; optionally report the start of work or progress.",
        {"lease_ms": 60_000, "progress": {"done": 10, "of": 100}},
    ),
    Verb.SNOOZE: _act(
        Verb.SNOOZE,
        "Postpone a message; the attempt does not count.",
        {"delay_ms": 3_600_000, "reason": "the shop is closed"},
    ),
    Verb.BURY: _act(
        Verb.BURY,
        "Bury a message: it is dead, whatever attempts are left.",
        {"reason": "no such address"},
    ),
    Verb.CANCEL: _act(Verb.CANCEL, "Cancel a message.", {"reason": "the order was withdrawn"}),
    Verb.TIME_OUT: _act(
        Verb.TIME_OUT,
        "Report an attempt that took too long. The message dies unless it retries timeouts.",
        {"error": "no answer within a minute"},
    ),
    Verb.CRASH: _act(
        Verb.CRASH,
        "Report a crash of the worker. The message is retried, or dies after too many crashes.",
        {"error": "killed by signal 9"},
    ),
}
