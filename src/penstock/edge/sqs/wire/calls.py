"""The operations by name: what each takes and gives, and how its input is read from JSON."""

from __future__ import annotations

import re
from typing import Any, Protocol

import msgspec

from penstock.edge.server.request import Request, Response
from penstock.edge.sqs.errors import SqsError, invalid_message_contents, serialization
from penstock.edge.sqs.rights import RIGHTS
from penstock.edge.sqs.wire import model
from penstock.edge.sqs.wire.model import Input, Output

_INPUT = "Request"  # how the names of inputs end, after the operation's own
ENVELOPE_BYTES = 320 * 1024  # of a request, around its messages
_SENDS = ("SendMessage", "SendMessageBatch")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class Operation:
    __slots__ = ("_decode", "gives", "name", "role", "scope", "takes")

    def __init__(self, name: str) -> None:
        self.name = name
        self.role, self.scope = RIGHTS[name]  # None: a key of any role
        self.takes: type[Input] = getattr(model, f"{name}{_INPUT}")
        self.gives: type[Output] | None = getattr(model, f"{name}Result", None)
        self._decode: Any = msgspec.json.Decoder(self.takes).decode

    def decode(self, body: bytes) -> Input:
        """Raises SerializationException for what is not the JSON of this input."""
        try:
            decoded: Input = self._decode(body or b"{}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._unreadable(body, error) from None
        return decoded

    def _unreadable(self, body: bytes, error: Exception) -> SqsError:
        # Half a surrogate pair is no text that JSON readers take, but SQS has a word for it.
        if self.name in _SENDS and _SURROGATE.search(body):
            return invalid_message_contents()
        return serialization(str(error))


# Whatever the model has an input for.
OPERATIONS = {
    name: Operation(name)
    for name in sorted(n.removesuffix(_INPUT) for n in vars(model) if n.endswith(_INPUT))
}


class WireProtocol(Protocol):
    """One of the two ways to ask; `protocols.of` finds the one that a request uses."""

    @property
    def most_bytes(self) -> int:
        """Of a body: what a message of the largest size takes when all of it is escaped."""
        ...

    def read(self, request: Request) -> tuple[Operation, Input]:
        """Raises SqsError.  It is what costs, so it comes after the question who asks."""
        ...

    def answer(self, operation: Operation, output: Output | None, request_id: str) -> Response: ...

    def refuse(self, error: SqsError, request_id: str) -> Response: ...
