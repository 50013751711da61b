"""Async handlers: all of them on one event loop, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from penstock.ports.work import WorkAct
from penstock.runtime.worker.held import Held

_CLEANING_UP_S = 1.0

Run = Callable[[Held], Coroutine[Any, Any, WorkAct | None]]


class EventLoop:
    """Started with the first async job."""

    def __init__(
        self,
        run: Run,
        *,
        finished: Callable[[Held, WorkAct | None], None],
        next_one: Callable[[], Held | None],
    ) -> None:
        self._run = run
        self._finished = finished
        self._next_one = next_one
        self._lock = threading.Lock()
        self._inbox: list[Held] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._running: set[asyncio.Task[None]] = set()

    def start(self, held: Held) -> None:
        """From any thread."""
        with self._lock:
            loop = self._loop or self._start_loop()
            self._inbox.append(held)
            is_first = len(self._inbox) == 1
        if is_first:  # otherwise somebody has called already
            loop.call_soon_threadsafe(self._begin)

    def close(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(loop.stop)

    def join(self) -> None:
        """Not for ever: a handler may block it."""
        if self._thread is not None:
            self._thread.join(2 * _CLEANING_UP_S)

    def _start_loop(self) -> asyncio.AbstractEventLoop:
        loop = self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._drive, args=(loop,), name="penstock-loop", daemon=True
        )
        self._thread.start()
        return loop

    def _drive(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_forever()
            if self._running:  # given back, and cancelled: they may clean up
                loop.run_until_complete(asyncio.wait(self._running, timeout=_CLEANING_UP_S))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    def _begin(self) -> None:
        with self._lock:
            begun, self._inbox = self._inbox, []
        for held in begun:
            self._spawn(held)

    def _spawn(self, held: Held) -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._live(held))
        held.stop = lambda: self._cancel(loop, task)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _cancel(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[None]) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(task.cancel)

    async def _live(self, held: Held) -> None:
        act: WorkAct | None = None
        try:
            if held.fate is None:
                act = await self._run(held)
        except asyncio.CancelledError:
            pass
        finally:
            self._finished(held, act)
            following = self._next_one()
            if following is not None:
                self._spawn(following)
