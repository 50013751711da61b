"""From a claimed message to the act that follows: the guard around every call of a handler.

Threads, event loops, sandboxes and the testing kit run handlers through here.  Whatever a handler,
its hooks or its argument types do, the caller gets an act and keeps running.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeGuard

from penstock.domain.errors import InvalidRequest
from penstock.domain.message.lease import Verb
from penstock.domain.message.outcome import HandlerOutcome
from penstock.ports.clock import Clock, Dice
from penstock.ports.work import Handler, Handlers, JobControls, Running, Work, WorkAct
from penstock.worker import outcomes
from penstock.worker.coroutines import run_here
from penstock.worker.error_text import error_text

_log = logging.getLogger("penstock.worker.jobs")

Wait = Callable[[Awaitable[object]], object]


class Ready:
    """A job whose handler is known and whose arguments fit: it can be called."""

    def __init__(self, work: Work, handler: Handler, call: Callable[[], object]) -> None:
        self.work = work
        self.handler = handler
        self._call = call

    def run(
        self, handlers: Handlers, controls: JobControls, dice: Dice, wait: Wait = run_here
    ) -> WorkAct:
        """For sync handlers; `wait` awaits what one returns that is awaitable."""
        call = _Called()
        try:
            with handlers.around(self.work, controls) as running:
                call.running = running
                result = self._call()
                call.returned(wait(result) if _is_awaitable(result) else result)
        except BaseException as error:
            call.result = error
        return self._act(call, dice)

    async def run_async(self, handlers: Handlers, controls: JobControls, dice: Dice) -> WorkAct:
        """For all handlers.  Raises CancelledError if the task was cancelled from outside."""
        call = _Called()
        task = asyncio.current_task()
        try:
            async with handlers.around_async(self.work, controls) as running:
                call.running = running
                result = self._call()
                call.returned(await result if _is_awaitable(result) else result)
        except BaseException as error:  # SystemExit too: asyncio would end the loop with it
            if _is_stopped(task, error):
                raise
            call.result = error
        return self._act(call, dice)

    def _act(self, call: _Called, dice: Dice) -> WorkAct:
        _log_traceback(self.work, call.result)
        return outcomes.act_for(
            self.work,
            self.handler,
            call.result,
            dice=dice.share(),
            is_completed=call.running is not None and call.running.is_completed,
        )


def _is_awaitable(result: object) -> TypeGuard[Awaitable[object]]:
    return result is not None and inspect.isawaitable(result)  # slow, and most return nothing


def _is_stopped(task: asyncio.Task[object] | None, error: BaseException) -> bool:
    """Was it cancelled from outside, or is it destroyed because its loop is gone?"""
    if isinstance(error, asyncio.CancelledError):
        return task is not None and task.cancelling() > 0
    try:
        return asyncio.current_task() is not task
    except RuntimeError:
        return True


class _Called:
    """What is known of a call so far.  A hook that swallows an exception leaves no result."""

    __slots__ = ("result", "running")

    def __init__(self) -> None:
        self.running: Running | None = None
        self.result: object = None

    def returned(self, result: object) -> None:
        self.result = result
        if self.running is not None:
            self.running.set_result(result)


def prepare(handlers: Handlers, work: Work, clock: Clock) -> Ready | WorkAct:
    """Ready to be called, or what is to be done with a job that cannot be."""
    try:
        handler = handlers.of(work)
        if handler is None:
            return outcomes.parked(work, now=clock.now())
        return Ready(work, handler, handler.bind(work.body))
    except InvalidRequest as error:
        return outcomes.misfit(work, error, now=clock.now())
    except (Exception, SystemExit) as error:  # types of the application may raise anything
        return failed(work, error)


def failed(work: Work, error: BaseException) -> WorkAct:
    """For an exception that did not come from the handler itself."""
    _log_traceback(work, error)
    return WorkAct(receipt=work.receipt, verb=Verb.FAIL, text=error_text(error))


def _log_traceback(work: Work, result: object) -> None:
    """Whole, as soon as it is raised: what is kept with the job is shortened, or not kept at all.

    An outcome is not an error, but may have been raised because of one.
    """
    error = result.__cause__ if isinstance(result, HandlerOutcome) else result
    if not isinstance(error, BaseException):
        return
    fields = {"job": work.id, "kind": work.kind, "queue": work.queue, "attempt": work.attempts}
    line = " ".join(f"{name}={value}" for name, value in fields.items())
    with suppress(Exception):  # of a log handler of the application
        _log.warning("job raised %s", line, exc_info=error, extra={"fields": fields})
