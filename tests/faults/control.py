"""The test's end of the control socket: steers the faults inside a broker, and is its lifeline."""

from __future__ import annotations

import contextlib
import json
import socket
from typing import Any


class Control:
    """When this end closes, for whatever reason, the broker at the other end is gone too."""

    def __init__(self) -> None:
        self._ours, self.theirs = socket.socketpair()

    def steer(self, order: dict[str, Any]) -> dict[str, Any]:
        """Send an order and wait until it is carried out; {} if the broker lost power over it."""
        self._ours.sendall(json.dumps(order).encode() + b"\n")
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while not answer.endswith(b"\n"):
                part = self._ours.recv(65536)
                if not part:
                    break
                answer += part
        reply: dict[str, Any] = json.loads(answer) if answer else {}
        assert "error" not in reply, reply
        return reply

    def close(self) -> None:
        self._ours.close()
        self.theirs.close()
