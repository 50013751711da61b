"""Logs of attempts: what handlers log and print."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from penstock.api.operation import (
    AnswerRecord,
    Cursor,
    Instant,
    InstantOrMs,
    QueryRecord,
    RequestRecord,
    about,
    named,
)
from penstock.domain.access.api_key import Role

_LEVEL = about("The severity, such as `info`; `print` for printed text.")
_SOURCE = about("The logger's name, or `stdout`, `stderr`.")


class LineIn(RequestRecord):
    at: Annotated[InstantOrMs, about("When it was logged.")]
    text: Annotated[str, about("What was logged.")]
    level: Annotated[str, _LEVEL] = "info"
    source: Annotated[str, _SOURCE] = "stdout"


class LogPart(RequestRecord):
    receipt: Annotated[str, about("The receipt of the claimed message.")]
    seq: Annotated[
        int,
        about(
            "The number of this part of the attempt's log, from 1. A part that is sent again is "
            "kept once."
        ),
    ]
    lines: Annotated[list[LineIn], about("The lines, in order.")]


class KeepLogs(RequestRecord):
    logs: Annotated[list[LogPart], about("Parts of logs; each has its own result.")]

    @property
    def is_idempotent(self) -> bool:
        return True


class KeptLogs(AnswerRecord, frozen=True):
    results: Annotated[
        list[str],
        about("For each part, in order: `kept`, or the code of its error, such as `lease_lost`."),
    ]


class LogLine(AnswerRecord, frozen=True):
    lease_no: Annotated[int, about("The lease of the attempt; it grows with each claim.")]
    at: Annotated[Instant, about("When it was logged.")]
    level: Annotated[str, _LEVEL]
    source: Annotated[str, _SOURCE]
    text: Annotated[str, about("What was logged.")]


class MessageLogs(AnswerRecord, frozen=True):
    lines: Annotated[list[LogLine], about("The lines of all attempts, in order.")]
    next: Annotated[
        str, about("The cursor of what comes next; while an attempt runs, ask with it again.")
    ]


class ReadLogs(QueryRecord):
    limit: Annotated[int, Meta(description="The maximum number of parts.", ge=1, le=1_000)] = 100
    cursor: Cursor = None


KEEP = named.post(
    "keepLogs",
    "/v1/leases/logs",
    "Keep what the attempts of claimed messages have logged, up to a limit per attempt.",
    KeptLogs,
    role=Role.CONSUME,
    request=KeepLogs,
    example={
        "logs": [
            {
                "receipt": "$RECEIPT",
                "seq": 1,
                "lines": [{"at": "2030-05-01T09:00:00Z", "text": "10 of 200 rows"}],
            }
        ]
    },
)
READ = named.get(
    "getLogs",
    "/v1/messages/{id}/logs",
    "Retrieve what the attempts of a message have logged.",
    MessageLogs,
    query=ReadLogs,
)
