"""An operation of the native API as data, and the base classes and common fields of its records."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Generic, Self, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from penstock.domain import errors
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.described import about as about
from penstock.domain.errors import PenstockError

Answer = TypeVar("Answer")

# In a record built by the server an instant is its ISO 8601 text, which the encoder writes as it
# is; every client sees a datetime in UTC.  Rendering text ourselves keeps milliseconds at three
# digits, and is faster than building datetimes on the hot path.
Instant = datetime
ToInstant = Callable[[int], Instant]

# Documented, not checked: services check values, and their errors name the limits in force.
Id = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
Positive = Annotated[int, Meta(extra_json_schema={"minimum": 1})]
DurationMs = Annotated[int, Meta(extra_json_schema={"minimum": 0})]
QueueName = Annotated[
    str, Meta(extra_json_schema={"pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}$"})
]

# An instant as a client sends it: ISO 8601 text, or milliseconds since the epoch.
InstantIn = Annotated[str, Meta(extra_json_schema={"format": "date-time"})] | int

# In an answer: the type that a client decodes; the server puts stored text there, as msgspec.Raw.
Json = Annotated[Any, Meta(extra_json_schema={"anyOf": [{}]})]

if TYPE_CHECKING:
    JsonIn = Any
    InstantOrMs = datetime | int | str
    InstantOrText = datetime | int | str
else:
    # In a request, clients put any value that can be JSON, and datetimes.  The server decodes a
    # JSON value into the text that it stores, and an instant into text or milliseconds.
    JsonIn = msgspec.Raw
    InstantOrMs = int | str
    # The same in a query, which is all text.
    InstantOrText = Annotated[
        Any,
        Meta(
            extra_json_schema={
                "anyOf": [{"type": "string", "format": "date-time"}, {"type": "integer"}]
            }
        ),
    ]

Limit = Annotated[
    int, Meta(description="The maximum number of results.", ge=1, le=1_000, examples=[10])
]
Cursor = Annotated[
    str | None,
    Meta(description="The `next` of the previous page. Without it, the first page is returned."),
]
Next = Annotated[
    str | None, Meta(description="The cursor of the next page. Null on the last page.")
]
OfKind = Annotated[str | None, Meta(description="Only messages of this kind.")]
WithTag = Annotated[str | None, Meta(description="Only messages with this tag.")]
OfGroup = Annotated[str | None, Meta(description="Only messages of this group.")]
WithEntityId = Annotated[str | None, Meta(description="Only messages with this `entity_id`.")]


class RequestRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What a client sends.  Unknown fields are rejected, so that typos are noticed."""

    @property
    def is_idempotent(self) -> bool:
        """Whether a client may repeat this request although its operation is not idempotent."""
        return False


class QueryRecord(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The parameters of a query string."""


class PageQuery(QueryRecord):
    limit: Limit = 100
    cursor: Cursor = None


class AnswerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the server answers.  Clients ignore unknown fields."""

    @classmethod
    def copy_of(cls, source: object, instant: ToInstant | None = None, **more: Any) -> Self:
        """Copy the fields of the same name from a record of the domain; `more` has the others.

        A record with instants needs `instant`, which renders them.
        """
        for name, is_instant in _fields(cls):
            if name not in more and hasattr(source, name):
                value = getattr(source, name)
                if is_instant and value is not None:
                    assert instant is not None, f"{cls.__name__}.{name} is an instant"
                    value = instant(value)
                more[name] = value
        return cls(**more)


@cache
def _fields(record: type[AnswerRecord]) -> list[tuple[str, bool]]:
    """The names of the fields, and whether they are instants."""
    instants = (Instant, Instant | None)
    fields = msgspec.structs.fields(record)
    return [(field.name, getattr(field.type, "__origin__", None) in instants) for field in fields]


class Operation(msgspec.Struct, Generic[Answer], frozen=True, kw_only=True, eq=False):
    name: str  # the operationId: "startMove"
    method: str
    path: str  # "/v1/queues/{queue}/moves"
    summary: str
    answer: type[Answer] | UnionType | None = None
    role: Role | None  # None: no key is needed
    scope: Scope = Scope.QUEUE  # which queues a key with this role must cover
    request: type | None = None
    is_partial: bool = False  # all fields of the request are optional; a mapping has the given ones
    example: Any = None  # a request that works
    query: type[QueryRecord] | None = None
    status: int = 200
    also: tuple[int, ...] = ()  # further success statuses, with the same answer
    media: str = "application/json"
    errors: tuple[type[PenstockError], ...] = ()  # besides those implied by path, body and role
    is_idempotent: bool = False  # clients repeat it if the answer is lost, as they do each GET


class _Method(msgspec.Struct, frozen=True):
    """Declares operations of one HTTP method, with the role that most of them need."""

    method: str
    role: Role
    is_idempotent: bool = False
    scope: Scope = Scope.QUEUE

    def __call__(
        self,
        name: str,
        path: str,
        summary: str,
        answer: type[Answer] | UnionType | None = None,
        **more: Any,
    ) -> Operation[Answer]:
        defaults = msgspec.structs.asdict(self)
        return Operation(name=name, path=path, summary=summary, answer=answer, **defaults | more)


get = _Method("GET", Role.READ)
post = _Method("POST", Role.OPERATE)
put = _Method("PUT", Role.OPERATE, is_idempotent=True)
patch = _Method("PATCH", Role.OPERATE, is_idempotent=True)
delete = _Method("DELETE", Role.OPERATE)


class _Methods:
    """The same for operations whose path does not name the queue."""

    def __init__(self, scope: Scope) -> None:
        self.get = replace(get, scope=scope)
        self.post = replace(post, scope=scope)
        self.put = replace(put, scope=scope)
        self.patch = replace(patch, scope=scope)
        self.delete = replace(delete, scope=scope)


named = _Methods(Scope.NAMED)  # the request or the addressed object names the queue
filtered = _Methods(Scope.FILTERED)  # the answer covers only the queues of the key
everywhere = _Methods(Scope.ALL)  # only for keys that cover all queues


_TEXT = {"type": "string"}
_UUID = {"type": "string", "format": "uuid"}
_NAME = {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}$"}
_TOPIC_NAME = {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,77}$"}
_TABLE_NAME = {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"}


class PathParameter(msgspec.Struct, frozen=True):
    text: str
    schema: dict[str, Any]
    example: str = ""  # a value that works; ids have none
    error: type[PenstockError] | None = None  # if it does not exist, unless the operation is a PUT


PATH_PARAMETERS = {
    "circuit": PathParameter("The hash of the circuit.", _TEXT, error=errors.CircuitNotFound),
    "fleet": PathParameter("The name of the fleet.", _TEXT, "mail", errors.FleetNotFound),
    "flow": PathParameter("The id of the flow.", _UUID, error=errors.FlowNotFound),
    "id": PathParameter("The id of the message.", _UUID, error=errors.MessageNotFound),
    "key": PathParameter("The id of the key.", _TEXT, error=errors.NotFound),
    "move": PathParameter("The id of the move.", _UUID, error=errors.MoveNotFound),
    "question": PathParameter(
        "The name of the question.", _NAME, "breaker", errors.QuestionNotFound
    ),
    "queue": PathParameter("The name of the queue.", _NAME, "mail", errors.QueueNotFound),
    "receipt": PathParameter("The receipt returned by the claim.", _TEXT, error=errors.LeaseLost),
    "schedule": PathParameter(
        "The name of the recurring work.", _NAME, "nightly", errors.ScheduleNotFound
    ),
    "signal": PathParameter(
        "The name of the signal.", _TEXT, "orders.17.approved", errors.SignalNotFound
    ),
    "subscription": PathParameter(
        "The name of the subscription.", _TOPIC_NAME, "mailer", errors.SubscriptionNotFound
    ),
    "table": PathParameter("The name of the table.", _TABLE_NAME, "slo", errors.TableNotFound),
    "task": PathParameter("The id of the task.", _UUID),
    "topic": PathParameter("The name of the topic.", _TOPIC_NAME, "orders", errors.TopicNotFound),
    "worker": PathParameter("The id of the worker.", _TEXT),
}


def one_of(*names: str) -> Meta:
    """The schemas of which a field holds one, where its type cannot name them."""
    refs = [{"$ref": f"#/components/schemas/{name}"} for name in names]
    return Meta(extra_json_schema={"oneOf": refs})
