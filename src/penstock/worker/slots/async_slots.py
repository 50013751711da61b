"""The slots of async handlers: one event loop in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from penstock.worker.claimed_job import ClaimedJob, JobAct
from penstock.worker.handling import fail
from penstock.worker.slots.loop_thread import LoopThread

Run = Callable[[ClaimedJob], Coroutine[Any, Any, JobAct | None]]


class EventLoop(LoopThread):
    """An event loop for async jobs, started with the first one."""

    def __init__(
        self,
        run: Run,
        *,
        finished: Callable[[ClaimedJob, JobAct | None], None],
        next_one: Callable[[], ClaimedJob | None],
        on_failure: Callable[[BaseException, list[ClaimedJob]], None],
    ) -> None:
        super().__init__()
        self._run = run
        self._finished = finished
        self._next_one = next_one
        self._on_failure = on_failure
        self._inbox: list[ClaimedJob] = []
        self._running: dict[ClaimedJob, asyncio.Task[None]] = {}

    def start(self, job: ClaimedJob) -> None:
        """Start a job on the loop; callable from any thread."""
        with self._lock:
            self._inbox.append(job)
            if len(self._inbox) == 1:  # otherwise a call into the loop is already pending
                self._running_loop().call_soon_threadsafe(self._begin)

    def wait_for(self, job: ClaimedJob, awaitable: Awaitable[object]) -> object:
        """Await what a sync handler returned; the job can be stopped meanwhile."""
        future = self.submit(awaitable)

        def stop() -> None:
            future.cancel()

        job.stop_handler = stop
        if job.stop_reason is not None:
            future.cancel()
        try:
            return future.result()
        finally:
            job.stop_handler = None

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
        for job in begun:
            self._spawn(job)

    def _spawn(self, job: ClaimedJob) -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._live(job))
        self._running[job] = task

        def cancel() -> None:
            if job.started_at:  # a task cancelled before its first step never reports its end
                task.cancel()

        def stop() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(cancel)

        job.stop_handler = stop

    async def _live(self, job: ClaimedJob) -> None:
        act: JobAct | None = None
        try:
            if job.stop_reason is None:
                act = await self._run(job)
        except asyncio.CancelledError:
            pass
        except GeneratorExit:  # the loop is gone
            raise
        except BaseException as error:
            act = fail(job, error)
        if self._running.pop(job, None) is None:
            return  # the loop broke, and the job was handled then
        self._finished(job, act)
        following = self._next_one()
        if following is not None:
            self._spawn(following)
