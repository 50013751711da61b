"""A promise of an answer.  Await it on an event loop, or block on `result()` in a thread."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Ticket(Protocol[T_co]):
    def result(self, timeout: float | None = None) -> T_co: ...

    def then(self, callback: Callable[[Any], None]) -> None:
        """On a loop: call back with the answer, or with the error in its place."""
        ...

    def __await__(self) -> Generator[Any, None, T_co]: ...
