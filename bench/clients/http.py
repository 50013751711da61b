"""One keep-alive HTTP/1.1 connection: ready-made request bytes in, a checked body out.

It knows exactly what message servers send: one answer at a time, framed by Content-Length. A server
that closes after each answer gets a new connection for the next request, at its own cost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias, cast

from bench.clients.base import OnError

Answered: TypeAlias = Callable[[bytes], None]


class HttpConnection(asyncio.Protocol):
    def __init__(self, on_error: OnError) -> None:
        self._on_error = on_error
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._length = 0
        self._body_at = 0
        self._expected: tuple[bytes, ...] = ()
        self._then: Answered | None = None
        self._is_last_answer = False
        self._expected_losses = 0
        self._reopening: asyncio.Task[None] | None = None

    def request(self, raw: bytes, expected: tuple[bytes, ...], then: Answered) -> None:
        """Writes a whole request; `then` gets the body if the status is one of `expected`."""
        self._expected = expected
        self._then = then
        if self._transport is not None:
            self._transport.write(raw)
        else:
            self._reopening = asyncio.get_running_loop().create_task(self._reopen(raw))

    def close(self) -> None:
        self._then = None
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._address = self._transport.get_extra_info("peername")

    def connection_lost(self, exc: Exception | None) -> None:
        if self._expected_losses:
            self._expected_losses -= 1
        elif self._then is not None:
            self._on_error(f"the server closed a connection that waits for an answer ({exc})")

    def data_received(self, data: bytes) -> None:
        if self._buffer:
            data = self._buffer + data
        if not self._length and not self._read_head(data):
            return
        if len(data) < self._length:
            self._buffer = data
            return
        body_at, self._length, self._buffer = self._body_at, 0, b""
        if data[9:12] not in self._expected or self._then is None:
            self._on_error(f"unexpected answer: {data[:400].decode('latin-1')}")
            return
        if self._is_last_answer:
            self._hang_up()
        then, self._then = self._then, None
        then(data[body_at:])

    def _read_head(self, data: bytes) -> bool:
        end = data.find(b"\r\n\r\n")
        if end < 0:
            self._buffer = data
            return False
        head = data[:end].lower()
        at = head.find(b"\r\ncontent-length:")
        if at < 0 and data[9:12] != b"204":
            self._on_error(f"an answer without a length: {head[:200].decode('latin-1')}")
            return False
        stop = head.find(b"\r\n", at + 17)
        size = 0 if at < 0 else int(head[at + 17 : stop if stop > 0 else len(head)])
        self._body_at = end + 4
        self._length = end + 4 + size
        self._is_last_answer = b"\r\nconnection: close" in head
        return True

    def _hang_up(self) -> None:
        assert self._transport is not None
        self._expected_losses += 1
        self._transport.close()
        self._transport = None

    async def _reopen(self, raw: bytes) -> None:
        try:
            await asyncio.get_running_loop().create_connection(lambda: self, *self._address)
        except OSError as error:
            self._on_error(f"could not connect again: {error}")
            return
        assert self._transport is not None
        self._transport.write(raw)


async def open_http(host: str, port: int, on_error: OnError) -> HttpConnection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: HttpConnection(on_error), host, port)
    return connection


async def ask(host: str, port: int, raw: bytes, expected: tuple[bytes, ...]) -> bytes:
    """One request on a connection of its own, outside the measured time."""
    answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    connection = await open_http(host, port, lambda text: _refuse(answer, text))
    try:
        connection.request(raw, expected, answer.set_result)
        return await answer
    finally:
        connection.close()


def request_bytes(method: str, path: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
    if body and not any(header.lower().startswith("content-type") for header in headers):
        lines.append("Content-Type: application/json")
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


def _refuse(answer: asyncio.Future[bytes], text: str) -> None:
    if not answer.done():
        answer.set_exception(RuntimeError(text))
