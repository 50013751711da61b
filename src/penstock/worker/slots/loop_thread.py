"""An event loop in a thread of its own, started when it is first needed.

No job can end a loop.  asyncio raises the SystemExit or KeyboardInterrupt of any task or callback
out of the loop's run method, after it has stored the exception in its task.  The loop itself is
intact: once it runs again, the exception reaches the code that awaits the task, and fails that job
alone.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

_log = logging.getLogger("penstock.worker")

T = TypeVar("T")
_CLEANING_UP_S = 1.0


def run_until(loop: asyncio.AbstractEventLoop, is_over: Callable[[], bool]) -> None:
    """Run a loop until it is stopped and `is_over`; raises what breaks the loop itself."""
    while not is_over():
        try:
            loop.run_forever()  # returns early if a job calls loop.stop()
        except (SystemExit, KeyboardInterrupt) as error:
            _log.warning("%s in a task of the event loop", type(error).__name__, exc_info=error)


def run_here(awaitable: Awaitable[T]) -> T:
    """Await it on a new loop in this thread.  Ctrl-C raises KeyboardInterrupt."""
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        task = loop.create_task(result_of(awaitable))
        while not task.done():
            try:
                loop.run_until_complete(task)
            except SystemExit:
                pass
            except RuntimeError:  # "Event loop stopped before Future completed."
                if loop.is_closed():
                    raise
        return task.result()


async def result_of(awaitable: Awaitable[T]) -> T:
    return await awaitable


class LoopThread:
    """Jobs cannot stop it.  If the loop itself breaks, the next use starts a new loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._waiting: set[Future[Any]] = set()

    def submit(self, awaitable: Awaitable[T]) -> Future[T]:
        """Await it on the loop, in the caller's context; cancelling the future cancels it."""
        with self._lock:
            loop = self._running_loop()
            future = asyncio.run_coroutine_threadsafe(result_of(awaitable), loop)
            self._waiting.add(future)
        future.add_done_callback(self._waiting.discard)
        return future

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Return or raise what the coroutine does; callable from any other thread."""
        return self.submit(awaitable).result()

    def close(self) -> None:
        with self._lock:
            self._is_closing = True
            if self._loop is not None:
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._loop.stop)

    def join(self) -> None:
        """Wait for the thread to end, with a limit: a handler may block it."""
        if self._thread is not None:
            self._thread.join(2 * _CLEANING_UP_S)

    def _tasks(self) -> list[asyncio.Task[None]]:
        """The tasks that may clean up when the loop closes."""
        return []

    def _failed(self, error: BaseException) -> None:
        """Handle a broken loop, whose tasks do not continue."""

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._drive, args=(self._loop,), name="penstock-loop", daemon=True
            )
            self._thread.start()
        return self._loop

    def _drive(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            run_until(loop, lambda: self._is_closing)
            tasks = self._tasks()
            if tasks:
                loop.run_until_complete(asyncio.wait(tasks, timeout=_CLEANING_UP_S))
            loop.run_until_complete(loop.shutdown_asyncgens())
        except BaseException as error:
            if not self._is_closing:
                self._break(error)
        finally:
            with suppress(Exception):
                loop.close()

    def _break(self, error: BaseException) -> None:
        with self._lock:
            self._loop = None
            waiting = list(self._waiting)
        self._failed(error)
        for future in waiting:
            with suppress(Exception):  # it was done in the meantime
                future.set_exception(RuntimeError(f"the event loop failed: {error!r}"))
