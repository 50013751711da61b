"""Turn a claimed message into the act that follows: the guard around every handler call.

Threads, event loops, sandboxes and the testing kit run handlers through here.  Whatever a handler,
its hooks or its argument types raise, the caller gets an act and keeps running.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from threading import get_ident
from typing import TypeGuard

from penstock.domain.errors import InvalidRequest
from penstock.domain.message.lease import Verb
from penstock.domain.message.outcome import HandlerOutcome, suspension_of
from penstock.ports.clock import Clock, Dice
from penstock.worker import outcomes
from penstock.worker.application import Handlers, Running
from penstock.worker.chunk import Chunk
from penstock.worker.claimed_job import ClaimedJob, JobAct
from penstock.worker.error_text import error_text
from penstock.worker.interruption import JobCancelled, withdraw_interrupt
from penstock.worker.slots.loop_thread import run_here

_log = logging.getLogger("penstock.worker.jobs")

Wait = Callable[[Awaitable[object]], object]


def prepare(handlers: Handlers, job: ClaimedJob, clock: Clock) -> JobAct | None:
    """Find the handler and decode the arguments; returns an act for a job that cannot run."""
    try:
        handler = handlers.handler_of(job)
        if handler is None:
            return outcomes.park_unknown_kind(job, now=clock.now())
        job.call = handler.call_with(job.body)
        job.handler = handler
        return None
    except InvalidRequest as error:
        return outcomes.park_unfit_arguments(job, error, now=clock.now())
    except (Exception, SystemExit) as error:  # argument types of the application may raise anything
        return fail(job, error)


def run(job: ClaimedJob, handlers: Handlers, dice: Dice, wait: Wait = run_here) -> JobAct:
    """Run a sync handler; `wait` awaits a result that is awaitable."""
    call = _Call()
    try:
        with handlers.around(job) as running:
            call.running = running
            bound = _bound(job, handlers)
            job.thread_id = get_ident()
            try:
                if job.stop_reason is not None:
                    raise JobCancelled
                result = bound()
            finally:
                job.thread_id = 0
                if job.stop_reason is not None:
                    withdraw_interrupt()
            call.note_result(wait(result) if _is_awaitable(result) else result)
    except BaseException as error:
        call.result = error
    return _act_after(job, call, dice)


async def run_async(job: ClaimedJob, handlers: Handlers, dice: Dice) -> JobAct:
    """Run any handler.  Raises CancelledError if the task was cancelled from outside."""
    call = _Call()
    task = asyncio.current_task()
    try:
        async with handlers.around_async(job) as running:
            call.running = running
            result = _bound(job, handlers)()
            call.note_result(await result if _is_awaitable(result) else result)
    except BaseException as error:  # SystemExit too: it would end asyncio's loop
        if _is_stopped(task, error):
            raise
        call.result = error
    return _act_after(job, call, dice)


def fail(job: ClaimedJob, error: BaseException) -> JobAct:
    """Return the act for an exception that the handler itself did not raise."""
    _log_traceback(job, error)
    return JobAct(receipt=job.receipt, verb=Verb.FAIL, text=error_text(error))


def _bound(job: ClaimedJob, handlers: Handlers) -> Callable[[], object]:
    if job.call is not None:
        return job.call
    assert isinstance(job, Chunk)
    return handlers.bind_chunk(job)


def _act_after(job: ClaimedJob, call: _Call, dice: Dice) -> JobAct:
    if job.stop_reason is None or not isinstance(call.result, JobCancelled):
        _log_traceback(job, call.result)
    assert job.handler is not None
    if job.log is not None:
        job.log.end()
    if isinstance(job, Chunk):
        job.acts = outcomes.acts_for(job, call.result, dice.share)
        return job.acts[0]
    return outcomes.act_for(
        job,
        job.handler,
        call.result,
        dice=dice.share(),
        is_completed=call.running is not None and call.running.is_completed,
    )


def _is_awaitable(result: object) -> TypeGuard[Awaitable[object]]:
    return result is not None and inspect.isawaitable(result)  # slow, and most return None


def _is_stopped(task: asyncio.Task[object] | None, error: BaseException) -> bool:
    """Whether the call was cancelled from outside, or destroyed because its loop is gone."""
    if isinstance(error, asyncio.CancelledError):
        return task is not None and task.cancelling() > 0
    try:
        return asyncio.current_task() is not task
    except RuntimeError:
        return True


class _Call:
    """The state of one call.  A hook that swallows an exception leaves no result."""

    __slots__ = ("result", "running")

    def __init__(self) -> None:
        self.running: Running | None = None
        self.result: object = None

    def note_result(self, result: object) -> None:
        self.result = result
        if self.running is not None:
            self.running.note_result(result)


def _log_traceback(job: ClaimedJob, result: object) -> None:
    """Log the full traceback now: the text stored with the job is shortened, or missing.

    An outcome is not an error, but one may have caused it.
    """
    error = result.__cause__ if isinstance(result, HandlerOutcome) else result
    if not isinstance(error, BaseException) or suspension_of(error) is not None:
        return
    fields: dict[str, object] = {
        "job": job.id,
        "kind": job.kind,
        "queue": job.queue,
        "attempt": job.attempts,
    }
    if job.members:
        fields["jobs"] = len(job.members)
    line = " ".join(f"{name}={value}" for name, value in fields.items())
    with suppress(Exception):  # raised by a log handler of the application
        _log.warning("job raised %s", line, exc_info=error, extra={"fields": fields})
