"""Waiting for messages to end."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from penstock.domain.message.history import Ending
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


class ResultStore(Protocol):
    """What became of messages."""

    def of(self, ids: Sequence[str]) -> dict[str, MessageResult]:
        """By id, live or from history; those that are not stored are left out."""
        ...

    def of_ending(self, ending: Ending) -> str | None:
        """JSON text; None: it was not kept."""
        ...

    def running(self, ids: Sequence[str]) -> set[str]:
        """Those of these messages that have not ended."""
        ...
