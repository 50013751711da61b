"""Operations of an API of AWS, and the protocols that read and answer them."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from penstock.domain.access.api_key import Role, Scope
from penstock.edge.aws.errors import AwsError, serialization
from penstock.edge.server.request import Request, Response


class Input(msgspec.Struct, frozen=True):
    pass


class AwsOutput(msgspec.Struct, omit_defaults=True):
    pass


class AwsOperation:
    __slots__ = ("_decode", "input_type", "name", "output_type", "role", "scope")

    def __init__(
        self,
        name: str,
        right: tuple[Role | None, Scope],  # no role: a key of any role
        input_type: type[Input],
        output_type: type[AwsOutput] | None,
    ) -> None:
        self.name = name
        self.role, self.scope = right
        self.input_type = input_type
        self.output_type = output_type
        self._decode: Any = msgspec.json.Decoder(input_type).decode

    def decode(self, body: bytes) -> Input:
        """Decode the input; raises SerializationException if the body does not match it."""
        try:
            decoded: Input = self._decode(body or b"{}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._unreadable(body, error) from None
        return decoded

    def _unreadable(self, body: bytes, error: Exception) -> AwsError:
        return serialization(str(error))


class WireProtocol(Protocol):
    """How requests are read and answered."""

    @property
    def most_bytes(self) -> int:
        """The largest body: a message of the largest size with every character escaped."""
        ...

    def read(self, request: Request) -> tuple[AwsOperation, Input]:
        """Decode the request; raises AwsError.  Expensive, so authenticate the caller first."""
        ...

    def answer(
        self, operation: AwsOperation, output: AwsOutput | None, request_id: str
    ) -> Response: ...

    def refuse(self, error: AwsError, request_id: str) -> Response: ...
