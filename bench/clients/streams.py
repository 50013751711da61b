"""Redis and Valkey streams with a consumer group, over raw RESP.

A finished entry is acknowledged and deleted (XACK and XDEL in one write): a queue that keeps what
is done would grow for ever. The body has no line ends, so answers can be cut at them.
"""

from __future__ import annotations

import itertools
from functools import cache

from bench.clients.base import Done, Endpoint, Got, OnError, Receipts
from bench.clients.line import LineConnection, open_line
from bench.payload import BODY

GROUP = "workers"
WAIT_MS = "20000"
LINES_BEFORE_ENTRIES = 5
LINES_PER_ENTRY = 8


class StreamsClient:
    fill_batch = 100

    def __init__(self, endpoint: Endpoint, queue: str) -> None:
        self._host, self._port = str(endpoint["host"]), int(endpoint["port"])
        self._stream = queue
        self._numbers = itertools.count()

    async def create_queue(self) -> None:
        await self._ask(command("XGROUP", "CREATE", self._stream, GROUP, "0", "MKSTREAM"), b"+OK")

    async def drop_queue(self) -> None:
        await self._ask(command("UNLINK", self._stream), b":1")

    async def connect(
        self, on_error: OnError, batch: int, *, waits: bool = False
    ) -> StreamsConnection:
        line = await open_line(self._host, self._port, on_error)
        consumer = f"c{next(self._numbers)}"
        return StreamsConnection(line, self._stream, consumer, waits=waits)

    async def _ask(self, raw: bytes, expected: bytes) -> None:
        line = await open_line(self._host, self._port, print)
        answer = await line.ask(raw)
        line.close()
        if not answer.startswith(expected):
            raise RuntimeError(f"unexpected answer: {answer[:200]!r}")


class StreamsConnection:
    def __init__(
        self, line: LineConnection, stream: str, consumer: str, *, waits: bool = False
    ) -> None:
        self._waits = waits
        self._line = line
        self._stream = stream
        self._consumer = consumer

    def send(self, count: int, then: Done) -> None:
        def take(data: bytes) -> bool:
            lines = data.split(b"\r\n")
            if len(lines) <= 2 * count:
                return not self._is_fine(data[:1] == b"$", data)
            if self._is_fine(all(line[:1] == b"$" for line in lines[:-1:2]), data):
                then()
            return True

        self._line.request(add(self._stream, count), take)

    def receive(self, count: int, then: Got) -> None:
        def take(data: bytes) -> bool:
            if data == b"*-1\r\n":
                then(())
                return True
            lines = data.split(b"\r\n")
            if not self._is_fine(data[:1] == b"*", data):
                return True
            if len(lines) < LINES_BEFORE_ENTRIES + 1:
                return False
            entries = int(lines[LINES_BEFORE_ENTRIES - 1][1:])
            if len(lines) != LINES_BEFORE_ENTRIES + entries * LINES_PER_ENTRY + 1:
                return False
            then(lines[LINES_BEFORE_ENTRIES + 2 :: LINES_PER_ENTRY])
            return True

        self._line.request(read(self._stream, self._consumer, count, self._waits), take)

    def ack(self, receipts: Receipts, then: Done) -> None:
        expected = b":%d\r\n:%d\r\n" % (len(receipts), len(receipts))

        def take(data: bytes) -> bool:
            if len(data) < len(expected) and expected.startswith(data):
                return False
            if self._is_fine(data == expected, data):
                then()
            return True

        ids = b"".join([b"$%d\r\n%b\r\n" % (len(receipt), receipt) for receipt in receipts])
        xack = head(3 + len(receipts), "XACK", self._stream, GROUP)
        xdel = head(2 + len(receipts), "XDEL", self._stream)
        self._line.request(xack + ids + xdel + ids, take)

    def close(self) -> None:
        self._line.close()

    def _is_fine(self, is_fine: bool, data: bytes) -> bool:
        if not is_fine:
            self._line.on_error(f"unexpected answer: {data[:300]!r}")
        return is_fine


def command(*words: str) -> bytes:
    return head(len(words), *words)


@cache
def head(count: int, *words: str) -> bytes:
    return b"*%d\r\n" % count + b"".join(
        b"$%d\r\n%b\r\n" % (len(word), word.encode()) for word in words
    )


@cache
def add(stream: str, count: int) -> bytes:
    return command("XADD", stream, "*", "body", BODY.decode()) * count


@cache
def read(stream: str, consumer: str, count: int, waits: bool = False) -> bytes:
    limits = ["COUNT", str(count), *(["BLOCK", WAIT_MS] if waits else [])]
    return command("XREADGROUP", "GROUP", GROUP, consumer, *limits, "STREAMS", stream, ">")
