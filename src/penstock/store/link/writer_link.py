"""A front's end of the connection: hot verbs go to the writer, which answers after its commit.

Without a connection, requests are refused.  If the connection is lost, the outcome of those that
were sent is unknown.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock.domain.errors import OutcomeUnknown, PenstockError, StoreUnavailable
from penstock.ports.link import (
    ForwardedRequest,
    FrontState,
    ResponseReceiver,
    unpack_error,
)
from penstock.ports.store import Claim, Claimed
from penstock.ports.ticket import Ticket
from penstock.store.commit.requests import (
    Pending,
    RequestKind,
    StoreRequest,
    answer_all,
    fail_all,
)
from penstock.store.link.frames import (
    ActedFrame,
    ActFrame,
    CancelFrame,
    ClaimedFrame,
    ClaimFrame,
    FailedFrame,
    ForgetFrame,
    FrameConnection,
    FromWriter,
    PartFrame,
    RequestFrame,
    ResponseFrame,
    SendFrame,
    SentFrame,
    StateFrame,
    decode_from_writer,
    unpack_errors,
)

_log = logging.getLogger("penstock.store")


class StoreWriterLink:
    """`on_forget` is called with the name of a queue that has changed."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, on_forget: Callable[[str], None]
    ) -> None:
        self._loop = loop
        self._on_forget = on_forget
        self._connection: FrameConnection[FromWriter] | None = None
        self._numbers = itertools.count()
        self._requests: dict[int, StoreRequest] = {}  # sent and not answered
        self._waiting: dict[int, StoreRequest] = {}  # claims that wait in the writer
        self._receivers: dict[int, ResponseReceiver] = {}
        self.pending = Pending()  # nothing waits here: everything is sent or refused

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    async def connect(self, end: socket.socket) -> None:
        """Use this end of a socket pair from now on; the writer has the other."""
        connection = FrameConnection(
            decode_from_writer, self._receive, lambda: self._lose(connection)
        )
        before, self._connection = self._connection, None
        if before is not None:
            before.close()
            self._lose(before)
        end.setblocking(False)
        await self._loop.create_unix_connection(lambda: connection, sock=end)
        self._connection = connection

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            self._lose(connection)

    # --- hot verbs ---

    def submit(self, request: StoreRequest) -> None:
        if request.ticket.loop is self._loop:
            self._send(request)
        else:
            self._loop.call_soon_threadsafe(self._send, request)

    def submit_all(self, requests: Sequence[StoreRequest]) -> None:
        for request in requests:
            self.submit(request)

    def unanswered(self) -> Iterable[StoreRequest]:
        """Requests whose answer is due at once, unlike that of claims that wait; any thread."""
        return list(self._requests.values())

    def _send(self, request: StoreRequest) -> None:
        connection = self._connection
        if connection is None:
            fail_all([request], _no_writer())
            return
        number = next(self._numbers)
        self._requests[number] = request
        match request.kind:
            case RequestKind.SEND:
                connection.send(SendFrame(number, request.payload))
            case RequestKind.ACT:
                connection.send(ActFrame(number, request.payload))
            case RequestKind.CLAIM:
                connection.send(ClaimFrame(number, request.payload))
            case RequestKind.WRITE:
                raise TypeError("a function cannot be sent to another process")

    # --- claims that wait, and forwarded requests ---

    def claim(self, wanted: Claim, *, queue: str, wait_ms: int) -> tuple[int, Ticket[Claimed]]:
        number, request = next(self._numbers), StoreRequest(RequestKind.CLAIM, wanted)
        self._require_connection().send(ClaimFrame(number, wanted, queue, wait_ms))
        self._waiting[number] = request
        return number, request.ticket

    def forward(self, request: ForwardedRequest, receiver: ResponseReceiver) -> int:
        number = next(self._numbers)
        self._require_connection().send(RequestFrame(number, request))
        self._receivers[number] = receiver
        return number

    def cancel(self, number: int) -> None:
        self._receivers.pop(number, None)
        if self._connection is not None:
            self._connection.send(CancelFrame(number))

    def report(self, state: FrontState) -> None:
        if self._connection is not None:
            self._connection.send(StateFrame(state))

    def _require_connection(self) -> FrameConnection[FromWriter]:
        if self._connection is None:
            raise _no_writer()
        return self._connection

    # --- answers ---

    def _receive(self, frame: list[FromWriter]) -> None:
        requests: list[StoreRequest] = []
        answers: list[Any] = []
        for record in frame:
            if isinstance(record, ForgetFrame):
                self._on_forget(record.queue)
                continue
            if isinstance(record, ResponseFrame | PartFrame):
                self._pass_on(record)
                continue
            request = self._requests.pop(record.number, None) or self._waiting.pop(
                record.number, None
            )
            if request is not None:
                requests.append(request)
                answers.append(_answer_of(record))
        answer_all(requests, answers)

    def _pass_on(self, record: ResponseFrame | PartFrame) -> None:
        number = record.number
        receiver = self._receivers.get(number)
        if receiver is None:
            return
        if isinstance(record, ResponseFrame):
            if not record.response.is_stream:
                del self._receivers[number]
            receiver.respond(record.response)
        elif record.data is not None:
            receiver.send(record.data)
        else:
            del self._receivers[number]
            receiver.end()

    def _lose(self, connection: FrameConnection[FromWriter]) -> None:
        if self._connection is connection:
            self._connection = None
            _log.warning("the connection to the writer is lost")
        elif self._connection is not None:
            return  # another connection has replaced it
        unanswered = [*self._requests.values(), *self._waiting.values()]
        receivers = list(self._receivers.values())
        self._requests.clear()
        self._waiting.clear()
        self._receivers.clear()
        fail_all(unanswered, OutcomeUnknown("the writer exited before it answered"))
        for receiver in receivers:
            receiver.end()


def _answer_of(record: SentFrame | ActedFrame | ClaimedFrame | FailedFrame) -> Any:
    match record:
        case SentFrame() | ActedFrame():
            return unpack_errors(record.answers)
        case ClaimedFrame():
            return Claimed(record.messages, record.next_due_at, unpack_errors(record.finished))
        case FailedFrame():
            return unpack_error(record.error)


def _no_writer() -> PenstockError:
    return StoreUnavailable("the writer of this node is not running; it is being restarted")
