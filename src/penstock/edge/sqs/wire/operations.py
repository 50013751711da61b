"""The operations of SQS with their roles, inputs and outputs; and a call, in either protocol."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from penstock.domain.access.api_key import ANYONE, Caller, Role, Scope
from penstock.domain.delivery.addresses import Network, is_within
from penstock.domain.errors import PenstockError
from penstock.edge.server.request import Request, Response
from penstock.edge.sqs.errors import SqsError, invalid_message_contents, serialization
from penstock.edge.sqs.rules import names
from penstock.edge.sqs.wire import model
from penstock.edge.sqs.wire.model import Input, SqsOutput
from penstock.ports.ticket import Ticket
from penstock.settings.values import SqsSettings

A = TypeVar("A")
R = TypeVar("R")

_SCHEMES = ("http", "https")


_PRODUCE = (Role.PRODUCE, Scope.NAMED)
_CONSUME = (Role.CONSUME, Scope.NAMED)
_OPERATE = (Role.OPERATE, Scope.NAMED)
_ANY = (None, Scope.NAMED)  # a key of any role

# The role a key needs, and which queues it must cover.
RIGHTS: dict[str, tuple[Role | None, Scope]] = {
    "AddPermission": _OPERATE,
    "CancelMessageMoveTask": _OPERATE,
    "ChangeMessageVisibility": _CONSUME,
    "ChangeMessageVisibilityBatch": _CONSUME,
    "CreateQueue": _OPERATE,
    "DeleteMessage": _CONSUME,
    "DeleteMessageBatch": _CONSUME,
    "DeleteQueue": _OPERATE,
    "GetQueueAttributes": _ANY,
    "GetQueueUrl": _ANY,
    "ListDeadLetterSourceQueues": _ANY,
    "ListMessageMoveTasks": _OPERATE,
    "ListQueueTags": _ANY,
    "ListQueues": (None, Scope.FILTERED),
    "PurgeQueue": _OPERATE,
    "ReceiveMessage": _CONSUME,
    "RemovePermission": _OPERATE,
    "SendMessage": _PRODUCE,
    "SendMessageBatch": _PRODUCE,
    "SetQueueAttributes": _OPERATE,
    "StartMessageMoveTask": _OPERATE,
    "TagQueue": _OPERATE,
    "UntagQueue": _OPERATE,
}

_INPUT = "Request"  # the suffix of input types
ENVELOPE_BYTES = 320 * 1024  # allowance for the part of a request around its messages
_SENDS = ("SendMessage", "SendMessageBatch")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class SqsOperation:
    __slots__ = ("_decode", "input_type", "name", "output_type", "role", "scope")

    def __init__(self, name: str) -> None:
        self.name = name
        self.role, self.scope = RIGHTS[name]  # None: a key of any role
        self.input_type: type[Input] = getattr(model, f"{name}{_INPUT}")
        self.output_type: type[SqsOutput] | None = getattr(model, f"{name}Result", None)
        self._decode: Any = msgspec.json.Decoder(self.input_type).decode

    def decode(self, body: bytes) -> Input:
        """Decode the input; raises SerializationException if the body does not match it."""
        try:
            decoded: Input = self._decode(body or b"{}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._unreadable(body, error) from None
        return decoded

    def _unreadable(self, body: bytes, error: Exception) -> SqsError:
        # JSON decoders reject half a surrogate pair; SQS has an error of its own for it.
        if self.name in _SENDS and _SURROGATE.search(body):
            return invalid_message_contents()
        return serialization(str(error))


# One for each input of the model.
OPERATIONS = {
    name: SqsOperation(name)
    for name in sorted(n.removesuffix(_INPUT) for n in vars(model) if n.endswith(_INPUT))
}


class WireProtocol(Protocol):
    """One of the two protocols; `protocols.of` returns the one that a request uses."""

    @property
    def most_bytes(self) -> int:
        """The largest body: a message of the largest size with every character escaped."""
        ...

    def read(self, request: Request) -> tuple[SqsOperation, Input]:
        """Decode the request; raises SqsError.  Expensive, so authenticate the caller first."""
        ...

    def answer(
        self, operation: SqsOperation, output: SqsOutput | None, request_id: str
    ) -> Response: ...

    def refuse(self, error: SqsError, request_id: str) -> Response: ...


class SqsCall(msgspec.Struct, frozen=True, gc=False):
    input: Any
    request: Request
    settings: SqsSettings
    scheme: str  # of this server, without a proxy
    proxies: Sequence[Network] = ()  # proxies trusted to set the host and the scheme
    caller: Caller = ANYONE
    role: Role | None = None  # that the operation requires; None: any

    @property
    def base(self) -> str:
        """The start of queue URLs: `sqs.public_url`, or the address that the client used."""
        if self.settings.public_url is not None:
            return self.settings.public_url
        headers = self.request.headers
        host = _first(headers, b"host") or "localhost"
        if not self.proxies or not is_within(self.request.client, self.proxies):
            return f"{self.scheme}://{host}"
        if self.caller is ANYONE:  # otherwise the host is signed, and a proxy must not change it
            host = _forwarded_host(headers) or host
        scheme = _first(headers, b"x-forwarded-proto").lower()
        return f"{scheme if scheme in _SCHEMES else self.scheme}://{host}"

    def url(self, queue: str) -> str:
        return names.url(self.base, self.settings.account, queue)

    def arn(self, queue: str) -> str:
        return str(names.QueueArn(self.settings.region, self.settings.account, queue))


class PendingAnswer(msgspec.Struct, Generic[A, R], frozen=True):
    """The fast path: a ticket of the store, and a callback for its answer instead of a task."""

    ticket: Ticket[A]
    finish: Callable[[A], R]  # returns an output, None, or an awaitable of either
    error_of: Callable[[PenstockError], PenstockError] | None = None  # translates an error


# What an operation returns; errors that it raises, now or later, are rendered as SQS errors.
AnyAnswer = PendingAnswer[Any, Any] | Awaitable[SqsOutput | None]


def _forwarded_host(headers: dict[bytes, bytes]) -> str:
    """The forwarded host with its port, which many proxies send in a separate header."""
    host = _first(headers, b"x-forwarded-host")
    port = _first(headers, b"x-forwarded-port")
    has_port = ":" in host.rpartition("]")[2]
    return f"{host}:{port}" if host and port.isdecimal() and not has_port else host


def _first(headers: dict[bytes, bytes], name: bytes) -> str:
    """The first value of the header, set by the proxy closest to the client."""
    return headers.get(name, b"").partition(b",")[0].strip().decode("latin-1")
