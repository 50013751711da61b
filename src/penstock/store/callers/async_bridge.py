"""Runs our synchronous statements on a caller's connection that belongs to an event loop.

They run in a thread, which passes each statement to the loop and waits for it.  Each call has its
own thread, not one of a pool: a call that waits for a lock must not block the call that holds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from penstock.domain.errors import ShuttingDown
from penstock.supervision.threads import start_logged

T = TypeVar("T")


class AsyncBridge:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_cancelled = False
        self._is_stopped = False

    async def run(self, what: Callable[[], T]) -> T:
        """Call `what` in a thread; it uses `wait` to run coroutines on the loop."""
        done: asyncio.Future[T] = self._loop.create_future()
        start_logged("penstock-tx", lambda: self._work(what, done))
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            # The connection must be free again before the caller uses it.
            self._is_cancelled = True
            while not done.done():
                await _wait_until_done(done)
            if not done.cancelled():
                done.exception()
            raise

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Called in the thread: run a coroutine on the loop.

        After a cancellation the next statement fails, and those that roll back succeed.
        """
        if self._is_cancelled and not self._is_stopped:
            self._is_stopped = True
            coroutine.close()
            raise ShuttingDown("the caller was cancelled")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _work(self, what: Callable[[], T], done: asyncio.Future[T]) -> None:
        try:
            answer = what()
        except BaseException as error:
            self._loop.call_soon_threadsafe(_fail, done, error)
        else:
            self._loop.call_soon_threadsafe(_answer, done, answer)


async def _wait_until_done(done: asyncio.Future[Any]) -> None:
    with suppress(asyncio.CancelledError):  # a second cancellation changes nothing
        await asyncio.wait([done])


def _answer(done: asyncio.Future[T], answer: T) -> None:
    if not done.done():
        done.set_result(answer)


def _fail(done: asyncio.Future[Any], error: BaseException) -> None:
    if not done.done():
        done.set_exception(error)
