"""One TCP connection under a test's full control: any bytes out, and the bytes that come back."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import NamedTuple, Self

PATIENCE_S = 30.0


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class ClosedError(Exception):
    """The other side closed before an answer was complete."""


class Raw:
    def __init__(self, port: int, *, patience_s: float = PATIENCE_S) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), patience_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._unread = b""

    def send(self, *parts: bytes) -> Self:
        self.socket.sendall(b"".join(parts))
        return self

    def ask(self, request: bytes) -> Answer:
        self.send(request)
        return self.answer(is_head=request.startswith(b"HEAD"))

    def answer(self, *, is_head: bool = False) -> Answer:
        """The next answer; raises ClosedError if there is none."""
        head = self._until(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(": ") for line in lines if line)
        headers = {name.lower(): value for name, _, value in pairs}
        status = int(first.split(" ")[1])
        size = 0 if is_head or status < 200 else int(headers.get("content-length", "0"))
        return Answer(status, headers, self._exactly(size))

    def rest(self) -> bytes:
        """Everything until the end of the connection."""
        while self._receive():
            pass
        rest, self._unread = self._unread, b""
        return rest

    def is_closed(self) -> bool:
        """Wait for the other side to close; if it sends anything first, it counts as open."""
        return self.rest() == b""

    def reset(self) -> None:
        """Abort the connection, as when a machine crashes."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _until(self, end: bytes) -> bytes:
        while end not in self._unread:
            if not self._receive():
                raise ClosedError(self._unread)
        found, _, self._unread = self._unread.partition(end)
        return found

    def _exactly(self, size: int) -> bytes:
        while len(self._unread) < size:
            if not self._receive():
                raise ClosedError(self._unread)
        found, self._unread = self._unread[:size], self._unread[size:]
        return found

    def _receive(self) -> bool:
        try:
            part = self.socket.recv(65536)
        except ConnectionResetError:
            return False
        self._unread += part
        return bool(part)


def request(
    method: str, path: str, body: bytes = b"", *, headers: dict[str, str] | None = None
) -> bytes:
    """Build a well-formed request; a header given as "" is omitted."""
    lines = {"Host": "localhost"}
    if body:
        lines |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    lines |= headers or {}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body
