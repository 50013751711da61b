"""One HTTP connection of a test client; every answer is ok, fail or unknown, never a guess."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import time
from dataclasses import dataclass
from typing import Any

from tests.faults.history import Outcome


@dataclass(frozen=True, slots=True)
class Answer:
    outcome: Outcome
    status: int  # 0: no answer at all
    data: Any
    start: float
    end: float

    @property
    def code(self) -> str:
        error = self.data.get("error") if isinstance(self.data, dict) else None
        return str(error.get("code", "")) if isinstance(error, dict) else ""

    @property
    def seconds(self) -> float:
        return self.end - self.start


class Wire:
    def __init__(self, port: int, *, timeout: float = 6.0) -> None:
        self._port = port
        self._timeout = timeout
        self._connection: http.client.HTTPConnection | None = None

    def call(
        self, method: str, path: str, body: Any = None, *, timeout: float | None = None
    ) -> Answer:
        start = time.monotonic()
        try:
            connection = self._connected(timeout or self._timeout)
        except OSError:
            # Nothing of the request was sent.
            return Answer(Outcome.FAIL, 0, None, start, time.monotonic())
        raw = None if body is None else json.dumps(body).encode()
        headers = {} if raw is None else {"Content-Type": "application/json"}
        try:
            connection.request(method, path, raw, headers)
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            return Answer(Outcome.UNKNOWN, 0, None, start, time.monotonic())
        end = time.monotonic()
        if response.will_close:
            self.close()
        return Answer(_outcome(response.status), response.status, _parsed(text), start, end)

    def close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.close()
            self._connection = None

    def reset(self) -> None:
        """Close with an RST, as if the client's machine had crashed."""
        if self._connection is not None and self._connection.sock is not None:
            linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
            self._connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close()

    def _connected(self, timeout: float) -> http.client.HTTPConnection:
        if self._connection is None:
            fresh = http.client.HTTPConnection("127.0.0.1", self._port, timeout=timeout)
            fresh.connect()
            fresh.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connection = fresh
        self._connection.sock.settimeout(timeout)
        return self._connection


def _outcome(status: int) -> Outcome:
    if status < 300:
        return Outcome.OK
    # A 5xx means failure, but a commit whose answer was lost inside the broker also ends as one.
    return Outcome.FAIL if status < 500 else Outcome.UNKNOWN


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text.decode(errors="replace")
