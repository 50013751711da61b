"""Async handlers: all of them on one event loop, in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from penstock.ports.work import WorkAct
from penstock.worker.handling import failed
from penstock.worker.loop_thread import LoopThread
from penstock.worker.running_job import Held

Run = Callable[[Held], Coroutine[Any, Any, WorkAct | None]]


class EventLoop(LoopThread):
    """Started with the first async job."""

    def __init__(
        self,
        run: Run,
        *,
        finished: Callable[[Held, WorkAct | None], None],
        next_one: Callable[[], Held | None],
        on_failure: Callable[[BaseException, list[Held]], None],
    ) -> None:
        super().__init__()
        self._run = run
        self._finished = finished
        self._next_one = next_one
        self._on_failure = on_failure
        self._inbox: list[Held] = []
        self._running: dict[Held, asyncio.Task[None]] = {}

    def start(self, held: Held) -> None:
        """From any thread."""
        with self._lock:
            self._inbox.append(held)
            if len(self._inbox) == 1:  # otherwise the loop was called already
                self._running_loop().call_soon_threadsafe(self._begin)

    def wait_for(self, held: Held, awaitable: Awaitable[object]) -> object:
        """What the sync handler of a job has returned: the job can be stopped meanwhile."""
        future = self.submit(awaitable)

        def stop() -> None:
            future.cancel()

        held.stop = stop
        if held.fate is not None:
            future.cancel()
        try:
            return future.result()
        finally:
            held.stop = None

    def _tasks(self) -> list[asyncio.Task[None]]:
        return list(self._running.values())

    def _failed(self, error: BaseException) -> None:
        running, self._running = list(self._running), {}
        self._on_failure(error, running)
        with self._lock:
            if self._inbox and not self._is_closing:
                self._running_loop().call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        with self._lock:
            begun, self._inbox = self._inbox, []
        for held in begun:
            self._spawn(held)

    def _spawn(self, held: Held) -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._live(held))
        self._running[held] = task

        def cancel() -> None:
            if held.started_at:  # a task cancelled before its first step never reports its end
                task.cancel()

        def stop() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(cancel)

        held.stop = stop

    async def _live(self, held: Held) -> None:
        act: WorkAct | None = None
        try:
            if held.fate is None:
                act = await self._run(held)
        except asyncio.CancelledError:
            pass
        except GeneratorExit:  # the loop is gone
            raise
        except BaseException as error:
            act = failed(held.work, error)
        if self._running.pop(held, None) is None:
            return  # the loop broke, and the job was taken care of then
        self._finished(held, act)
        following = self._next_one()
        if following is not None:
            self._spawn(following)
