"""Running claimed jobs on the spot, through the same code as a worker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from enum import StrEnum

import msgspec

from penstock.client.off_loop import aside
from penstock.domain.message.lease import Verb
from penstock.ports.clock import Clock, Dice
from penstock.ports.work import Handler, Handlers, JobControls, Running, Work, WorkAct, WorkSource
from penstock.worker import outcomes
from penstock.worker.handling import Ready, prepare


class Outcome(StrEnum):
    DONE = "done"
    FAILED = "failed"
    SNOOZED = "snoozed"
    CANCELLED = "cancelled"
    BURIED = "buried"
    TIMED_OUT = "timed_out"
    PARKED = "parked"  # no handler, or arguments that do not fit


_OUTCOMES = {
    Verb.COMPLETE: Outcome.DONE,
    Verb.FAIL: Outcome.FAILED,
    Verb.SNOOZE: Outcome.SNOOZED,
    Verb.CANCEL: Outcome.CANCELLED,
    Verb.BURY: Outcome.BURIED,
    Verb.TIME_OUT: Outcome.TIMED_OUT,
}


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt, and what came of it."""

    id: str
    kind: str | None
    queue: str
    attempt: int
    outcome: Outcome
    result: object = None  # what the handler returned
    error: BaseException | None = None  # what it raised
    text: str | None = None  # what is kept with the job: the error, the reason


class Watching:
    """The handlers of an application; remembers what the last call returned or raised."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers
        self.result: object = None
        self.error: BaseException | None = None

    def find(self, kind: str) -> Handler | None:
        return self._handlers.find(kind)

    def of(self, work: Work) -> Handler | None:
        return self._handlers.of(work)

    @contextmanager
    def around(self, work: Work, controls: JobControls) -> Iterator[Running]:
        with self._remembering(), self._handlers.around(work, controls) as running:
            yield _Told(running, self)

    @asynccontextmanager
    async def around_async(self, work: Work, controls: JobControls) -> AsyncIterator[Running]:
        with self._remembering():
            async with self._handlers.around_async(work, controls) as running:
                yield _Told(running, self)

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        self.result = self.error = None
        try:
            yield
        except BaseException as error:
            self.error = error
            raise


class _Told:
    def __init__(self, running: Running, watching: Watching) -> None:
        self._running = running
        self._watching = watching

    @property
    def is_completed(self) -> bool:
        return self._running.is_completed

    def set_result(self, result: object) -> None:
        self._watching.result = result
        self._running.set_result(result)


class _Controls:
    is_stopping = False

    def __init__(
        self, source: WorkSource, work: Work, clock: Clock, *, deadline: int | None
    ) -> None:
        self._source = source
        self._work = work
        self._clock = clock
        self.deadline = deadline

    @property
    def is_overdue(self) -> bool:
        return self.deadline is not None and self._clock.now() >= self.deadline

    def extend(self, *, lease_ms: int | None = None, progress: str | None = None) -> None:
        if self.is_overdue:  # a worker has stopped it by now, and says so itself
            return
        act = WorkAct(
            receipt=self._work.receipt, verb=Verb.EXTEND, delay_ms=lease_ms, progress=progress
        )
        [error] = aside(lambda: self._source.act([act]))  # async handlers call it on their loop
        if error is not None:
            raise error


class Runner:
    def __init__(self, source: WorkSource, handlers: Handlers, clock: Clock, dice: Dice) -> None:
        self._source = source
        self._watching = Watching(handlers)
        self._clock = clock
        self._dice = dice

    def run(self, work: Work) -> tuple[Run, WorkAct]:
        """Of a handler that is not async."""
        ready = prepare(self._watching, work, self._clock)
        if isinstance(ready, WorkAct):
            return self._parked(work, ready)
        controls = self._controls(ready)
        act = ready.run(self._watching, controls, self._dice)
        return self._ran(ready, controls, act)

    async def run_async(self, work: Work) -> tuple[Run, WorkAct]:
        """Of any handler, on the loop of the caller."""
        ready = prepare(self._watching, work, self._clock)
        if isinstance(ready, WorkAct):
            return self._parked(work, ready)
        controls = self._controls(ready)
        act = await ready.run_async(self._watching, controls, self._dice)
        return self._ran(ready, controls, act)

    def is_async(self, work: Work) -> bool:
        handler = self._watching.of(work)
        return handler is not None and handler.is_async

    def _controls(self, ready: Ready) -> _Controls:
        limit = ready.work.timeout_ms or ready.handler.timeout_ms
        deadline = None if limit is None else self._clock.now() + limit
        return _Controls(self._source, ready.work, self._clock, deadline=deadline)

    def _ran(self, ready: Ready, controls: _Controls, act: WorkAct) -> tuple[Run, WorkAct]:
        # Time goes only when somebody moves the clock: a handler that took too long has done so.
        if controls.is_overdue:
            act = outcomes.timed_out(ready.work, ready.handler)
        seen = self._watching
        return _run(ready.work, act, result=seen.result, error=seen.error), act

    def _parked(self, work: Work, act: WorkAct) -> tuple[Run, WorkAct]:
        outcome = Outcome.PARKED if act.verb is Verb.SNOOZE else _OUTCOMES[act.verb]
        return msgspec.structs.replace(_run(work, act), outcome=outcome), act


def _run(
    work: Work, act: WorkAct, *, result: object = None, error: BaseException | None = None
) -> Run:
    return Run(
        id=work.id,
        kind=work.kind,
        queue=work.queue,
        attempt=work.attempts,
        outcome=_OUTCOMES[act.verb],
        result=result,
        error=error,
        text=act.text,
    )
