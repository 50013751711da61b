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

    def tell(self, order: dict[str, Any]) -> dict[str, Any]:
        """Obeyed when this returns; {} if the broker lost its power over it."""
        self._ours.sendall(json.dumps(order).encode() + b"\n")
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while not answer.endswith(b"\n"):
                part = self._ours.recv(65536)
                if not part:
                    break
                answer += part
        told: dict[str, Any] = json.loads(answer) if answer else {}
        assert "error" not in told, told
        return told

    def close(self) -> None:
        self._ours.close()
        self.theirs.close()
