"""Streamed responses: server-sent events.

Such a response has no length; it ends with its connection.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from penstock.edge.server.request import Response

EVENTS = b"text/event-stream"
_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # keeps nginx from buffering the events
)


class Stream(Response, eq=False, kw_only=True):
    """`send` and `end` may be called at any time; `on_lost` is called once, at the end."""

    on_lost: Callable[[Stream], None]
    status: int = 200
    content_type: bytes = EVENTS
    headers: tuple[tuple[bytes, bytes], ...] = _HEADERS
    _is_lost: bool = False
    _has_ended: bool = False
    _unsent: list[bytes] = msgspec.field(default_factory=list)
    _write: Callable[[bytes], None] | None = None
    _close: Callable[[], None] | None = None

    def begin(self, write: Callable[[bytes], None], close: Callable[[], None]) -> None:
        """Start writing; called once the connection is ready."""
        self._write, self._close = write, close
        for data in self._unsent:
            write(data)
        self._unsent = []
        if self._has_ended:
            close()

    def send(self, data: bytes) -> None:
        if self._write is None:
            self._unsent.append(data)
        else:
            self._write(data)

    def end(self) -> None:
        self._has_ended = True
        if self._close is not None:
            self._close()

    def lose(self) -> None:
        if not self._is_lost:
            self._is_lost = True
            self.on_lost(self)


def stream_head(stream: Stream, date: bytes) -> bytes:
    head = [b"HTTP/1.1 200 OK\r\ncontent-type: ", stream.content_type, b"\r\ndate: ", date]
    for name, value in stream.headers:
        head += (b"\r\n", name, b": ", value)
    head.append(b"\r\nconnection: close\r\n\r\n")
    return b"".join(head)


def event(data: bytes, *, name: str) -> bytes:
    """Encode one event; the data is JSON on one line."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)
