"""Tickets for the store's answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_OPEN: Any = object()
_loops: dict[int, asyncio.AbstractEventLoop] = {}  # the last one seen in each thread


class StoreTicket(Generic[T]):
    """Bound to the event loop it was created on, or to the thread without one.

    Not a Future: creating one costs more than the rest of a send.  On a loop the answer is a plain
    call (`then`); `await` creates a future.
    """

    __slots__ = ("_answer", "_callback", "_lock", "help", "loop", "thread")

    def __init__(self) -> None:
        self._answer: Any = _OPEN
        self._callback: Callable[[T | BaseException], None] | None = None
        self.help: Callable[[float], None] | None = None
        self.loop = running_loop()
        self.thread = threading.get_ident()
        if self.loop is None:
            self._lock = threading.Lock()
            self._lock.acquire()

    def result(self, timeout: float | None = None) -> T:
        if self.loop is not None:
            raise RuntimeError("this ticket belongs to an event loop: await it")
        patience = -1 if timeout is None else timeout
        if self.help is not None and self._answer is _OPEN:
            self.help(patience)
        if not self._lock.acquire(timeout=patience):
            raise TimeoutError("the store did not answer in time")
        self._lock.release()
        return self._value()

    def then(self, callback: Callable[[T | BaseException], None]) -> None:
        """Call back on the loop with the answer or the error; at once if there is one already."""
        if self._answer is not _OPEN:
            callback(self._answer)
        else:
            self._callback = callback

    def __await__(self) -> Generator[Any, None, T]:
        if self.loop is None:
            raise RuntimeError("this ticket belongs to a thread: call result()")
        if self._answer is _OPEN:
            future: asyncio.Future[None] = self.loop.create_future()
            self._callback = lambda _: None if future.done() else future.set_result(None)
            yield from future
        return self._value()

    def answer(self, answer: T | BaseException) -> None:
        """Called on the ticket's own loop, or from any thread for a thread's ticket.

        The first answer counts; one that comes after a timeout is dropped.
        """
        if self._answer is not _OPEN:
            return
        self._answer = answer
        if self.loop is None:
            with suppress(RuntimeError):  # two threads answered at the same moment
                self._lock.release()
        elif self._callback is not None:
            # Drop it first: it often refers to the ticket, and such cycles are costly to collect.
            callback, self._callback = self._callback, None
            callback(answer)

    def _value(self) -> T:
        if isinstance(self._answer, BaseException):
            raise self._answer
        value: T = self._answer
        return value


def running_loop() -> asyncio.AbstractEventLoop | None:
    """asyncio.get_running_loop(), cached: before Python 3.12 that costs a tenth of a send."""
    thread = threading.get_ident()
    loop = _loops.get(thread)
    if loop is None or not loop.is_running():
        try:
            loop = _loops[thread] = asyncio.get_running_loop()
        except RuntimeError:
            _loops.pop(thread, None)
            return None
    return loop
