"""An operation of the native API as data, and the base classes of its records."""

from __future__ import annotations

from datetime import datetime
from types import UnionType
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta

from penstock.domain.access.api_key import Role, Scope
from penstock.domain.errors import PenstockError

Answer = TypeVar("Answer")

# In a record built by the server an instant is its ISO 8601 text, which the encoder writes as it
# is; every client sees a datetime in UTC.  Rendering text ourselves keeps milliseconds at three
# digits, and is faster than building datetimes on the hot path.
Instant = datetime

# Documented, not checked: services check values, with messages that name the limits in force.
Id = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
Positive = Annotated[int, Meta(extra_json_schema={"minimum": 1})]
DurationMs = Annotated[int, Meta(extra_json_schema={"minimum": 0})]
QueueName = Annotated[
    str, Meta(extra_json_schema={"pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}$"})
]

# An instant as a client sends it: ISO 8601 text, or milliseconds since the epoch.
InstantIn = Annotated[str, Meta(extra_json_schema={"format": "date-time"})] | int

Limit = Annotated[int, Meta(description="How many at most.", ge=1, le=1_000, examples=[10])]


Cursor = Annotated[
    str | None, Meta(description="`next` of the page before; without it, the first page.")
]
Next = Annotated[str | None, Meta(description="Cursor of the next page; null: this is the last.")]


class RequestRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What a client sends.  Unknown fields are rejected, so that typos are noticed."""


class QueryRecord(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The parameters of a query string."""


class AnswerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the server answers.  Clients skip fields that they do not know."""


class Operation(msgspec.Struct, Generic[Answer], frozen=True, kw_only=True, eq=False):
    name: str  # the operationId: "startMove"
    method: str
    path: str  # "/v1/queues/{queue}/moves"
    summary: str
    role: Role | None  # None: open to everybody
    scope: Scope = Scope.QUEUE  # which queues a key with this role must be for
    request: type | None = None
    is_partial: bool = False  # any part of the request's fields; handlers get a dictionary
    example: Any = None  # a request that works
    query: type[QueryRecord] | None = None
    answer: type[Answer] | UnionType | None = None
    status: int = 200
    also: tuple[int, ...] = ()  # other statuses of success, with the same answer
    media: str = "application/json"
    errors: tuple[type[PenstockError], ...] = ()  # beside those that path, body and role entail
    is_idempotent: bool = False  # clients repeat it if the answer is lost, as they do every GET


def about(text: str) -> Meta:
    """The description of a field."""
    return Meta(description=text)
