"""Run claimed jobs immediately, through the same code as a worker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from enum import StrEnum
from itertools import zip_longest

import msgspec

from penstock.client.blocking import run_off_loop
from penstock.domain.message.lease import Verb
from penstock.ports.clock import Clock, Dice
from penstock.worker import handling, outcomes
from penstock.worker.application import Handlers, JobSource, Running
from penstock.worker.chunk import Chunk, chunk_of, key_of
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


Ended = tuple[Run, JobAct]


class RecordingHandlers:
    """The handlers of an application; records what the last call returned or raised."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers
        self.kinds = handlers.kinds
        self.worker_hooks = handlers.worker_hooks
        self.result: object = None
        self.error: BaseException | None = None

    @property
    def chunk_queues(self) -> frozenset[str]:
        return self._handlers.chunk_queues

    def find(self, kind: str) -> Handler | None:
        return self._handlers.find(kind)

    def handler_of(self, job: ClaimedJob) -> Handler | None:
        return self._handlers.handler_of(job)

    def bind_chunk(self, chunk: Chunk) -> Callable[[], object]:
        return self._handlers.bind_chunk(chunk)

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

    def run(self, job: ClaimedJob) -> list[Ended]:
        """Run a handler that is not async; of a chunk, the end of each job."""
        parked = self._prepare(job)
        if parked is not None:
            return parked
        return self._end(job, handling.run(job, self._handlers, self._dice))

    async def run_async(self, job: ClaimedJob) -> list[Ended]:
        """Run any handler, on the caller's loop."""
        parked = self._prepare(job)
        if parked is not None:
            return parked
        return self._end(job, await handling.run_async(job, self._handlers, self._dice))

    def gather(self, job: ClaimedJob, more: Callable[[int], list[ClaimedJob]]) -> list[ClaimedJob]:
        """For a chunk handler the chunk of this job and `more`; then the jobs that do not fit."""
        handler = self._handlers.handler_of(job)
        if handler is None or handler.batch is None or self._parked(job) is not None:
            return [job]
        jobs: list[ClaimedJob] = [job]
        others: list[ClaimedJob] = []
        for other in more(handler.batch.max - 1) if handler.batch.max > 1 else ():
            is_like = self._handlers.handler_of(other) is handler and self._parked(other) is None
            (jobs if is_like and key_of(other) == key_of(job) else others).append(other)
        return [chunk_of(jobs), *others]

    def is_async(self, job: ClaimedJob) -> bool:
        handler = self._handlers.handler_of(job)
        return handler is not None and handler.is_async

    def _prepare(self, job: ClaimedJob) -> list[Ended] | None:
        now = self._clock.now()
        if isinstance(job, Chunk):
            job.begin(now)
            job.left = job.members
        else:
            act = self._parked(job)
            if act is not None:
                outcome = Outcome.PARKED if act.verb is Verb.SNOOZE else _OUTCOMES[act.verb]
                return [(msgspec.structs.replace(_run(job, act), outcome=outcome), act)]
        for each in (job, *job.members):
            assert each.handler is not None
            limit = each.timeout_ms or each.handler.timeout_ms
            each.deadline = None if limit is None else now + limit
            each.on_extend = self._extend
        return None

    def _parked(self, job: ClaimedJob) -> JobAct | None:
        return handling.prepare(self._handlers, job, self._clock)

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

    def _end(self, job: ClaimedJob, act: JobAct) -> list[Ended]:
        seen = self._handlers
        if not isinstance(job, Chunk):
            return [self._ended(job, act, seen.result, seen.error)]
        ends = []
        for (member, own), item in zip_longest(job.ends(act), job.items):
            outcome = item.outcome if item is not None and item.is_settled else seen.result
            error = outcome if isinstance(outcome, BaseException) else seen.error
            ends.append(self._ended(member, own or act, outcome, error))
        return ends

    def _ended(
        self, job: ClaimedJob, act: JobAct, result: object, error: BaseException | None
    ) -> Ended:
        # Time passes only when the clock is advanced: a handler that took too long has advanced it.
        if self._is_overdue(job):
            act = outcomes.time_out(job)
        return _run(job, act, result=result, error=error), act


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
