"""A TCP connection for pipelined text protocols: bytes out, one callback per whole answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias, cast

from bench.clients.base import OnError

# Gets all that has come so far; says False while more must come.
Whole: TypeAlias = Callable[[bytes], bool]


class LineConnection(asyncio.Protocol):
    def __init__(self, on_error: OnError) -> None:
        self.on_error = on_error
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._take: Whole | None = None

    def request(self, raw: bytes, take: Whole) -> None:
        self._take = take
        assert self._transport is not None
        self._transport.write(raw)

    async def ask(self, raw: bytes, lines: int = 1) -> bytes:
        """For the moments outside the measured time: waits for `lines` ends of line."""
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def take(data: bytes) -> bool:
            if data.count(b"\r\n") < lines:
                return False
            answer.set_result(data)
            return True

        self.request(raw, take)
        return await answer

    def close(self) -> None:
        self._take = None
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._take is not None:
            self.on_error(f"the server closed a connection that waits for an answer ({exc})")

    def data_received(self, data: bytes) -> None:
        if self._buffer:
            data = self._buffer + data
        take = self._take
        if take is None:
            self.on_error(f"an unexpected answer: {data[:200]!r}")
            return
        # Cleared first: a whole answer starts the next request from within `take`.
        self._buffer, self._take = b"", None
        if not take(data):
            self._buffer, self._take = data, take


async def open_line(host: str, port: int, on_error: OnError) -> LineConnection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: LineConnection(on_error), host, port)
    return connection
