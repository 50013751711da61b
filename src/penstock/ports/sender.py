"""What pushes requests to other programs: it is given one, and tells what became of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec


class Request(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    payload: bytes | None = None
    timeout_ms: int


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """What came back: a status, or an error in its place."""

    status: int | None = None
    took_ms: int = 0
    error: str | None = None  # why there is no status; never with one
    retry_after: str | None = None  # what its header says
    is_broken_off: bool = False  # by us: it says nothing about the other side
    excerpt: str | None = None  # the beginning of what an unsuccessful one says


class Sender(Protocol):
    def send(self, request: Request, then: Callable[[Response], None]) -> None:
        """Begin, and call back exactly once, from any thread.  Never raises, never blocks."""
        ...

    def close(self) -> None:
        """Break off what is under way, telling so; nothing is sent from here on."""
        ...
