"""What a worker calls to run a job of one kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from penstock.domain.message.retry import Backoff


class Handler(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def is_async(self) -> bool: ...
    @property
    def timeout_ms(self) -> int | None: ...
    @property
    def backoff(self) -> Backoff | None:
        """None: use the queue's back-off."""
        ...

    def bind(self, body: str) -> Callable[[], object]:
        """Return the call with its arguments; raises InvalidRequest if the body does not match.

        If the result, or the result of a returned coroutine, is an Outcome, it decides what happens
        to the job; any other result completes it.
        """
        ...
