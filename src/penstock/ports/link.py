"""What a front and the writer of a node exchange beside the hot verbs of the store.

A front forwards HTTP requests that it does not answer itself, and claims that wait; it reports its
state.  The writer reports to the fronts which queues have changed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, cast

import msgspec

from penstock.domain import errors
from penstock.domain.errors import PenstockError
from penstock.domain.node_part import PartTrouble
from penstock.ports.store import Claim, Claimed
from penstock.ports.ticket import Ticket

PackedError = list[str]  # the name of its class, and its text


def pack_error(error: object) -> PackedError:
    """Errors of the contract keep their class; others become internal errors."""
    if not isinstance(error, PenstockError):
        return [PenstockError.__name__, f"{type(error).__name__}: {error}"]
    known = next(kind for kind in type(error).__mro__ if vars(errors).get(kind.__name__) is kind)
    return [known.__name__, str(error)]


def unpack_error(packed: PackedError) -> PenstockError:
    name, text = packed
    kind = cast(type[PenstockError], getattr(errors, name))
    error = kind.__new__(kind)
    error.args = (text,)  # not through __init__, which some classes call with a name
    return error


class ForwardedRequest(msgspec.Struct, frozen=True, array_like=True):
    """An HTTP request as the front received it, with its credentials."""

    method: str
    path: str
    query: bytes
    headers: dict[bytes, bytes]
    body: bytes
    client: str  # the address of the peer


class ForwardedResponse(msgspec.Struct, frozen=True, array_like=True):
    status: int
    body: bytes
    content_type: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    is_stream: bool = False  # what follows is sent in parts, until the stream ends


class FrontState(msgspec.Struct, frozen=True, array_like=True):
    """What a front reports about itself."""

    troubles: tuple[PartTrouble, ...] = ()
    waiting: dict[int, int] = {}  # by queue number: claims that wait in the front itself


class ResponseReceiver(Protocol):
    """Takes the response to one forwarded request, on the event loop."""

    def respond(self, response: ForwardedResponse) -> None: ...
    def send(self, data: bytes) -> None:
        """A part of a stream."""
        ...

    def end(self) -> None:
        """The end of a stream; or, without a response, of the connection to the writer."""
        ...


class WriterLink(Protocol):
    """A front's connection to the writer.  Raises StoreUnavailable while there is none."""

    @property
    def is_connected(self) -> bool: ...
    def forward(self, request: ForwardedRequest, receiver: ResponseReceiver) -> int:
        """Forward a request; returns its number."""
        ...

    def claim(self, wanted: Claim, *, queue: str, wait_ms: int) -> tuple[int, Ticket[Claimed]]:
        """A claim that waits in the writer; returns its number, too."""
        ...

    def cancel(self, number: int) -> None:
        """End a claim, which is then answered without messages, or a forwarded request."""
        ...

    def report(self, state: FrontState) -> None: ...


class WriterDuties(Protocol):
    """What the writer does for fronts, beside the hot verbs of the store."""

    def claim(self, wanted: Claim, *, queue: str, wait_ms: int) -> Awaitable[Claimed]: ...
    def serve(
        self, request: ForwardedRequest, receiver: ResponseReceiver
    ) -> Callable[[], None] | None:
        """Answer the request; returns how to cancel it, unless it is answered already."""
        ...

    def note(self, front: int, state: FrontState | None) -> None:
        """The state of a front; None: it is not connected."""
        ...
