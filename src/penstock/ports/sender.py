"""Protocol for pushing HTTP requests to other programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec


class PushRequest(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    payload: bytes | None = None
    timeout_ms: int


class PushResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The result: a status, or an error in its place."""

    status: int | None = None
    took_ms: int = 0
    error: str | None = None  # why there is no status
    retry_after: str | None = None  # the value of its header
    is_broken_off: bool = False  # we aborted it, so it does not count against the endpoint
    excerpt: str | None = None  # the beginning of an unsuccessful answer


class Sender(Protocol):
    def send(self, request: PushRequest, then: Callable[[PushResponse], None]) -> None:
        """Start it, and call back exactly once, from any thread.  Never raises, never blocks."""
        ...

    def close(self) -> None:
        """Abort requests under way, with their callbacks; nothing is sent from now on."""
        ...
