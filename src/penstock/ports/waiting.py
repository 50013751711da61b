"""Waiting for messages to end."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from penstock.domain.message.result import MessageResult


class PendingEnd(Protocol):
    """A step that waits; its answer is None if the time is over or the process is closing."""

    def result(self, timeout: float | None = None) -> MessageResult | None: ...
    def __await__(self) -> Generator[Any, None, MessageResult | None]: ...


class Waiter(Protocol):
    def wait(self, wait_ms: int) -> PendingEnd:
        """Wait up to `wait_ms` for the end of the message."""
        ...


class EndWaiter(Protocol):
    """Waits for messages to end, in this process."""

    def register(self, message_id: str) -> AbstractContextManager[Waiter]:
        """Notice the end of this message from now on.

        Raises TooManyWaiting.  Register first and look at the message then: otherwise its end could
        fall in between.
        """
        ...
