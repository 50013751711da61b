"""The writer's end of the connections to its fronts: gives their requests to the store.

Requests of a frame, and of the frames that other fronts send in the same turn of the loop, share a
commit; the answers go back in one frame per front.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

from penstock.domain.errors import PenstockError
from penstock.ports.link import ForwardedResponse, FrontState, WriterDuties, pack_error
from penstock.ports.store import Claimed, Store
from penstock.store.link.frames import (
    ActedFrame,
    ActFrame,
    CancelFrame,
    ClaimedFrame,
    ClaimFrame,
    FailedFrame,
    ForgetFrame,
    FrameConnection,
    FromFront,
    LoopGatherer,
    PartFrame,
    RequestFrame,
    ResponseFrame,
    SendFrame,
    SentFrame,
    StateFrame,
    decode_from_front,
)


class FrontLinks:
    """The connections to all fronts of this node."""

    def __init__(self, store: Store, duties: WriterDuties) -> None:
        self._store = store
        self._duties = duties
        self._links: dict[int, _FrontLink] = {}
        self._frames: LoopGatherer[tuple[_FrontLink, list[FromFront]]] = LoopGatherer(self._take)

    async def connect(self, front: int, end: socket.socket) -> None:
        """Serve the front with this number on our end of a socket pair."""
        link = _FrontLink(front, self._store, self._duties, self._frames.add, self._lose)
        end.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: link.connection, sock=end)
        self._links[front] = link
        self._duties.note(front, FrontState())

    def forget(self, queue: str) -> None:
        """Inform all fronts that a queue has changed."""
        for link in self._links.values():
            link.connection.send(ForgetFrame(queue))

    def close(self) -> None:
        for link in list(self._links.values()):
            link.connection.close()

    def _take(self, frames: list[tuple[_FrontLink, list[FromFront]]]) -> None:
        for link, frame in frames:
            link.take(frame)

    def _lose(self, link: _FrontLink) -> None:
        if self._links.get(link.front) is link:
            del self._links[link.front]
            self._duties.note(link.front, None)


class _FrontLink:
    def __init__(
        self,
        front: int,
        store: Store,
        duties: WriterDuties,
        on_frame: Callable[[tuple[_FrontLink, list[FromFront]]], None],
        on_lost: Callable[[_FrontLink], None],
    ) -> None:
        self.front = front
        self._store = store
        self._duties = duties
        self._on_lost = on_lost
        self._claims: dict[int, asyncio.Task[None]] = {}  # those that wait
        self._cancels: dict[int, Callable[[], None]] = {}  # of forwarded requests
        self.connection: FrameConnection[FromFront] = FrameConnection(
            decode_from_front, lambda frame: on_frame((self, frame)), self._lose
        )

    def take(self, frame: list[FromFront]) -> None:
        for record in frame:
            try:
                self._take(record)
            except PenstockError as error:  # the store is closing
                if not isinstance(record, StateFrame):
                    self._fail(record.number, error)

    def _take(self, record: FromFront) -> None:
        match record:
            case SendFrame():
                self._store.send(record.new).then(partial(self._answer_send, record.number))
            case ActFrame():
                self._store.act(record.acts).then(partial(self._answer_acts, record.number))
            case ClaimFrame() if record.wait_ms == 0:
                self._store.claim(record.claim).then(partial(self._answer_claim, record.number))
            case ClaimFrame():
                task = asyncio.get_running_loop().create_task(self._claim(record))
                self._claims[record.number] = task
            case CancelFrame():
                self._cancel(record.number)
            case RequestFrame():
                receiver = _Receiver(record.number, self.connection.send, self._cancels)
                cancel = self._duties.serve(record.request, receiver)
                if cancel is not None and not receiver.has_ended:
                    self._cancels[record.number] = cancel
            case StateFrame():
                self._duties.note(self.front, record.state)

    def _answer_send(self, number: int, answer: Any) -> None:
        if isinstance(answer, BaseException):
            self._fail(number, answer)
        else:
            self.connection.send(SentFrame(number, answer))

    def _answer_acts(self, number: int, answer: Any) -> None:
        if isinstance(answer, BaseException):
            self._fail(number, answer)
        else:
            self.connection.send(ActedFrame(number, answer))

    def _answer_claim(self, number: int, answer: Any) -> None:
        if isinstance(answer, Claimed):
            finished: list[Any] = answer.finished
            self.connection.send(
                ClaimedFrame(number, answer.messages, answer.next_due_at, finished)
            )
        else:
            self._fail(number, answer)

    def _fail(self, number: int, error: object) -> None:
        self.connection.send(FailedFrame(number, pack_error(error)))

    async def _claim(self, record: ClaimFrame) -> None:
        answer: Any
        try:
            answer = await self._duties.claim(
                record.claim, queue=record.queue, wait_ms=record.wait_ms
            )
        except asyncio.CancelledError:  # by the front: its client has left, or it is stopping
            answer = Claimed([])
        except Exception as error:
            answer = error
        self._claims.pop(record.number, None)
        self._answer_claim(record.number, answer)

    def _cancel(self, number: int) -> None:
        task = self._claims.get(number)
        if task is not None:
            task.cancel()
        cancel = self._cancels.pop(number, None)
        if cancel is not None:
            cancel()

    def _lose(self) -> None:
        for number in [*self._claims, *self._cancels]:
            self._cancel(number)
        self._on_lost(self)


class _Receiver:
    """Sends the response to one forwarded request to its front."""

    def __init__(
        self,
        number: int,
        send: Callable[[object], None],
        cancels: dict[int, Callable[[], None]],
    ) -> None:
        self._number = number
        self._send = send
        self._cancels = cancels
        self.has_ended = False

    def respond(self, response: ForwardedResponse) -> None:
        self._send(ResponseFrame(self._number, response))
        if not response.is_stream:
            self._forget()

    def send(self, data: bytes) -> None:
        self._send(PartFrame(self._number, data))

    def end(self) -> None:
        self._send(PartFrame(self._number, None))
        self._forget()

    def _forget(self) -> None:
        self.has_ended = True
        self._cancels.pop(self._number, None)
