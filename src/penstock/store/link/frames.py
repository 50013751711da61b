"""Frames between a front and the writer: lists of records in MessagePack, each with its length.

One frame carries what a few iterations of the event loop have produced: requests of many clients in
one direction, the answers of a commit in the other.  Both ends run the same release, so records
have no names of fields and no versions.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

import msgspec

from penstock.domain.message.draft import NewMessage
from penstock.domain.message.lease import LeaseAct
from penstock.domain.message.lifecycle import Content, Message
from penstock.ports.link import (
    ForwardedRequest,
    ForwardedResponse,
    FrontState,
    PackedError,
    pack_error,
    unpack_error,
)
from penstock.ports.store import Acted, Claim, Sent

T = TypeVar("T")
_LENGTH = struct.Struct(">I")
_MAX_ITERATIONS = 4

# --- from a front ---


class SendFrame(msgspec.Struct, array_like=True, tag=1, gc=False):
    number: int
    new: Sequence[NewMessage]


class ActFrame(msgspec.Struct, array_like=True, tag=2, gc=False):
    number: int
    acts: Sequence[LeaseAct]


class ClaimFrame(msgspec.Struct, array_like=True, tag=3, gc=False):
    number: int
    claim: Claim
    queue: str = ""  # its name, for a claim that waits
    wait_ms: int = 0


class CancelFrame(msgspec.Struct, array_like=True, tag=4, gc=False):
    number: int


class RequestFrame(msgspec.Struct, array_like=True, tag=5):
    number: int
    request: ForwardedRequest


class StateFrame(msgspec.Struct, array_like=True, tag=6):
    state: FrontState


# --- from the writer ---


class SentFrame(msgspec.Struct, array_like=True, tag=1, gc=False):
    number: int
    answers: list[Sent | PackedError]


class ActedFrame(msgspec.Struct, array_like=True, tag=2, gc=False):
    number: int
    answers: list[Acted | PackedError]


class ClaimedFrame(msgspec.Struct, array_like=True, tag=3, gc=False):
    number: int
    messages: list[tuple[Message, Content]]
    next_due_at: int | None
    finished: list[Acted | PackedError]


class FailedFrame(msgspec.Struct, array_like=True, tag=4, gc=False):
    number: int
    error: PackedError


class ResponseFrame(msgspec.Struct, array_like=True, tag=5):
    number: int
    response: ForwardedResponse


class PartFrame(msgspec.Struct, array_like=True, tag=6):
    """A part of a stream; None: its end."""

    number: int
    data: bytes | None


class ForgetFrame(msgspec.Struct, array_like=True, tag=7):
    """A queue has changed: forget what is cached of it."""

    queue: str


FromFront = SendFrame | ActFrame | ClaimFrame | CancelFrame | RequestFrame | StateFrame
FromWriter = (
    SentFrame | ActedFrame | ClaimedFrame | FailedFrame | ResponseFrame | PartFrame | ForgetFrame
)

decode_from_front = msgspec.msgpack.Decoder(list[FromFront]).decode
decode_from_writer = msgspec.msgpack.Decoder(list[FromWriter]).decode


def unpack_errors(answers: list[Any]) -> list[Any]:
    if any(type(answer) is list for answer in answers):
        return [unpack_error(one) if type(one) is list else one for one in answers]
    return answers


_encode = msgspec.msgpack.Encoder(enc_hook=pack_error).encode


class LoopGatherer(Generic[T]):
    """Gathers until an iteration of the loop adds nothing more, but not for long.

    Input that becomes ready while other input is handled joins it: larger commits cost less per
    message.  A lone item waits for one iteration of the loop that has nothing to do.
    """

    def __init__(self, use: Callable[[list[T]], None]) -> None:
        self._use = use
        self._loop = asyncio.get_running_loop()
        self._items: list[T] = []
        self._counted = 0
        self._iterations = 0

    def add(self, item: T) -> None:
        if not self._items:
            self._counted = self._iterations = 0
            self._loop.call_soon(self._end_iteration)
        self._items.append(item)

    def _end_iteration(self) -> None:
        count = len(self._items)
        if count > self._counted and self._iterations < _MAX_ITERATIONS:
            self._counted = count
            self._iterations += 1
            self._loop.call_soon(self._end_iteration)
            return
        items, self._items = self._items, []
        self._use(items)


class FrameConnection(asyncio.Protocol, Generic[T]):
    """One end of the connection; used on one event loop."""

    def __init__(
        self,
        decode: Callable[[memoryview], list[T]],
        on_frame: Callable[[list[T]], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._decode = decode
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._unsent: LoopGatherer[object] = LoopGatherer(self._send_all)
        self.send = self._unsent.add  # together with what else is sent about now
        self._received = bytearray()
        self._needed = _LENGTH.size

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._on_lost()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) < self._needed:
            return
        frames, start = [], 0
        with memoryview(self._received) as received:
            while len(received) - start >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(received, start)
                end = start + _LENGTH.size + length
                if end > len(received):
                    break
                frames.append(self._decode(received[start + _LENGTH.size : end]))
                start = end
        del self._received[:start]
        self._needed = _LENGTH.size
        if len(self._received) >= _LENGTH.size:
            self._needed += _LENGTH.unpack_from(self._received)[0]
        for frame in frames:
            self._on_frame(frame)

    def _send_all(self, records: list[object]) -> None:
        if self._transport is not None:
            data = _encode(records)
            self._transport.writelines((_LENGTH.pack(len(data)), data))
