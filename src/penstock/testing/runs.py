"""Run claimed jobs immediately, through the same code as a worker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from enum import StrEnum

import msgspec

from penstock.client.blocking import run_off_loop
from penstock.domain.message.lease import Verb
from penstock.ports.clock import Clock, Dice
from penstock.worker import handling, outcomes
from penstock.worker.application import Handlers, JobSource, Running
from penstock.worker.claimed_job import ClaimedJob, Handler, JobAct


class Outcome(StrEnum):
    DONE = "done"
    FAILED = "failed"
    SNOOZED = "snoozed"
    CANCELLED = "cancelled"
    BURIED = "buried"
    TIMED_OUT = "timed_out"
    PARKED = "parked"  # no handler, or arguments that do not match


_OUTCOMES = {
    Verb.COMPLETE: Outcome.DONE,
    Verb.FAIL: Outcome.FAILED,
    Verb.SNOOZE: Outcome.SNOOZED,
    Verb.CANCEL: Outcome.CANCELLED,
    Verb.BURY: Outcome.BURIED,
    Verb.TIME_OUT: Outcome.TIMED_OUT,
}


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt and its result."""

    id: str
    kind: str | None
    queue: str
    attempt: int
    outcome: Outcome
    result: object = None  # what the handler returned
    error: BaseException | None = None  # what it raised
    text: str | None = None  # the text stored with the job: the error or the reason


class RecordingHandlers:
    """The handlers of an application; records what the last call returned or raised."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers
        self.kinds = handlers.kinds
        self.worker_hooks = handlers.worker_hooks
        self.result: object = None
        self.error: BaseException | None = None

    def find(self, kind: str) -> Handler | None:
        return self._handlers.find(kind)

    def handler_of(self, job: ClaimedJob) -> Handler | None:
        return self._handlers.handler_of(job)

    @contextmanager
    def around(self, job: ClaimedJob) -> Iterator[Running]:
        with self._recording(), self._handlers.around(job) as running:
            yield _RecordedCall(running, self)

    @asynccontextmanager
    async def around_async(self, job: ClaimedJob) -> AsyncIterator[Running]:
        with self._recording():
            async with self._handlers.around_async(job) as running:
                yield _RecordedCall(running, self)

    @contextmanager
    def _recording(self) -> Iterator[None]:
        self.result = self.error = None
        try:
            yield
        except BaseException as error:
            self.error = error
            raise


class _RecordedCall:
    def __init__(self, running: Running, handlers: RecordingHandlers) -> None:
        self._running = running
        self._handlers = handlers

    @property
    def is_completed(self) -> bool:
        return self._running.is_completed

    def note_result(self, result: object) -> None:
        self._handlers.result = result
        self._running.note_result(result)


class KitRunner:
    def __init__(self, source: JobSource, handlers: Handlers, clock: Clock, dice: Dice) -> None:
        self._source = source
        self._handlers = RecordingHandlers(handlers)
        self._clock = clock
        self._dice = dice

    def run(self, job: ClaimedJob) -> tuple[Run, JobAct]:
        """Run a handler that is not async."""
        parked = self._prepare(job)
        if parked is not None:
            return parked
        return self._end(job, handling.run(job, self._handlers, self._dice))

    async def run_async(self, job: ClaimedJob) -> tuple[Run, JobAct]:
        """Run any handler, on the caller's loop."""
        parked = self._prepare(job)
        if parked is not None:
            return parked
        return self._end(job, await handling.run_async(job, self._handlers, self._dice))

    def is_async(self, job: ClaimedJob) -> bool:
        handler = self._handlers.handler_of(job)
        return handler is not None and handler.is_async

    def _prepare(self, job: ClaimedJob) -> tuple[Run, JobAct] | None:
        act = handling.prepare(self._handlers, job, self._clock)
        if act is not None:
            outcome = Outcome.PARKED if act.verb is Verb.SNOOZE else _OUTCOMES[act.verb]
            return msgspec.structs.replace(_run(job, act), outcome=outcome), act
        assert job.handler is not None
        limit = job.timeout_ms or job.handler.timeout_ms
        job.deadline = None if limit is None else self._clock.now() + limit
        job.on_extend = self._extend
        return None

    def _extend(self, job: ClaimedJob, lease_ms: int | None, progress: str | None) -> None:
        if self._is_overdue(job):  # a worker would have stopped it and reported the timeout
            return
        act = JobAct(receipt=job.receipt, verb=Verb.EXTEND, delay_ms=lease_ms, progress=progress)
        [error] = run_off_loop(
            lambda: self._source.act([act])
        )  # async handlers call it on their own loop
        if error is not None:
            raise error

    def _is_overdue(self, job: ClaimedJob) -> bool:
        return job.deadline is not None and self._clock.now() >= job.deadline

    def _end(self, job: ClaimedJob, act: JobAct) -> tuple[Run, JobAct]:
        # Time passes only when the clock is advanced: a handler that took too long has advanced it.
        if self._is_overdue(job):
            act = outcomes.time_out(job)
        seen = self._handlers
        return _run(job, act, result=seen.result, error=seen.error), act


def _run(
    job: ClaimedJob, act: JobAct, *, result: object = None, error: BaseException | None = None
) -> Run:
    return Run(
        id=job.id,
        kind=job.kind,
        queue=job.queue,
        attempt=job.attempts,
        outcome=_OUTCOMES[act.verb],
        result=result,
        error=error,
        text=act.text,
    )
