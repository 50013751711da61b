"""One AMQP connection with one channel, in confirm mode, cut down to what the loads do."""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from typing import cast

from bench.clients import amqp_frames as frames
from bench.clients.base import Done, Got, OnError, Receipts
from bench.payload import BODY

IDLE_AFTER = 0.5


class AmqpConnection(asyncio.Protocol):
    def __init__(self, queue: str, on_error: OnError) -> None:
        self._queue = queue
        self._on_error = on_error
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._replies: deque[tuple[tuple[int, int], asyncio.Future[None]]] = deque()
        self._publish = frames.publish(queue, BODY)
        self._published = 0
        self._unconfirmed: set[int] = set()
        self._confirmed: Done | None = None
        self._deliveries: deque[bytes] = deque()
        self._wanted = 0
        self._got: Got | None = None
        self._is_consuming = False
        self._was_idle = False

    def send(self, count: int, then: Done) -> None:
        self._unconfirmed = set(range(self._published + 1, self._published + 1 + count))
        self._published += count
        self._confirmed = then
        self._write(self._publish * count)

    def receive(self, count: int, then: Got) -> None:
        """Deliveries are pushed: the prefetch of `count` lets the next ones come after an ack."""
        self._wanted, self._got, self._was_idle = count, then, False
        if not self._is_consuming:
            self._is_consuming = True
            self._write(frames.qos(count) + frames.consume(self._queue))
            self._look_for_idleness()
        elif len(self._deliveries) >= count:
            self._hand_over()

    def ack(self, receipts: Receipts, then: Done) -> None:
        """AMQP answers no acknowledgement, so this is the one act without a wait."""
        (tag,) = struct.unpack(">Q", receipts[-1])
        self._write(frames.ack(tag))
        then()

    def close(self) -> None:
        self._got = self._confirmed = None
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    async def ask(self, raw: bytes, reply: tuple[int, int]) -> None:
        """For the moments outside the measured time."""
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._replies.append((reply, answer))
        self._write(raw)
        await asyncio.wait_for(answer, 20)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._on_error(f"the server closed the connection ({exc})")

    def data_received(self, data: bytes) -> None:
        if self._buffer:
            data = self._buffer + data
        at, size = 0, len(data)
        while size - at >= 8:
            end = at + 8 + int.from_bytes(data[at + 3 : at + 7], "big")
            if end > size:
                break
            if data[at] == frames.METHOD:
                self._method(data[at + 7 : end - 1])
            elif data[at] == frames.BODY and len(self._deliveries) >= self._wanted > 0:
                self._hand_over()
            at = end
        self._buffer = data[at:]

    def _method(self, payload: bytes) -> None:
        name = (payload[1], payload[3])
        if name == frames.DELIVER:
            tag_at = 5 + payload[4]
            self._deliveries.append(payload[tag_at : tag_at + 8])
        elif name == frames.ACK:
            self._confirm(int.from_bytes(payload[4:12], "big"), is_multiple=payload[12] == 1)
        elif self._replies and self._replies[0][0] == name:
            self._replies.popleft()[1].set_result(None)
        elif name not in (frames.QOS_OK, frames.CONSUME_OK):
            self._on_error(f"unexpected method {name}: {payload[4:200]!r}")

    def _confirm(self, tag: int, *, is_multiple: bool) -> None:
        if is_multiple:
            self._unconfirmed = {one for one in self._unconfirmed if one > tag}
        else:
            self._unconfirmed.discard(tag)
        if not self._unconfirmed and self._confirmed is not None:
            then, self._confirmed = self._confirmed, None
            then()

    def _hand_over(self) -> None:
        if self._got is None:
            return
        then, self._got = self._got, None
        count = min(self._wanted, len(self._deliveries))
        then([self._deliveries.popleft() for _ in range(count)])

    def _look_for_idleness(self) -> None:
        """A server that pushes never reports an empty queue; two quiet intervals do."""
        if self._transport is None:
            return
        if self._got is not None and self._was_idle:
            self._hand_over()
        self._was_idle = self._got is not None
        asyncio.get_running_loop().call_later(IDLE_AFTER, self._look_for_idleness)

    def _write(self, raw: bytes) -> None:
        if self._transport is not None:
            self._transport.write(raw)
