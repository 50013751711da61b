"""From a claimed message to the act that follows: the whole way through a handler.

For whoever runs handlers on a thread or on a loop of its own; what runs them in processes uses the
parts (`runtime/outcomes.py`, `Handlers.around`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

from penstock.domain.errors import InvalidRequest
from penstock.ports.clock import Clock, Dice
from penstock.ports.work import Controls, Handler, Handlers, Work, WorkAct
from penstock.runtime import outcomes


class Ready:
    """A job whose handler is known and whose arguments fit: it can be called."""

    def __init__(self, work: Work, handler: Handler, call: Callable[[], object]) -> None:
        self.work = work
        self.handler = handler
        self._call = call

    def run(self, handlers: Handlers, controls: Controls, dice: Dice) -> WorkAct:
        """Of a handler that is not async; a job may end its thread's patience, never the thread."""
        is_completed = False
        result: object
        try:
            with handlers.around(self.work, controls) as running:
                try:
                    result = self._call()
                    running.told(result)
                finally:
                    is_completed = running.is_completed
        except BaseException as error:
            result = error
        return self._act(result, dice, is_completed)

    async def run_async(self, handlers: Handlers, controls: Controls, dice: Dice) -> WorkAct:
        """Cancelling it cancels the handler, and goes on."""
        is_completed = False
        result: object
        try:
            with handlers.around(self.work, controls) as running:
                try:
                    result = self._call()
                    if inspect.isawaitable(result):
                        result = await result
                    running.told(result)
                finally:
                    is_completed = running.is_completed
        except Exception as error:
            result = error
        return self._act(result, dice, is_completed)

    def _act(self, result: object, dice: Dice, is_completed: bool) -> WorkAct:
        return outcomes.act_for(
            self.work, self.handler, result, dice=dice.share(), is_completed=is_completed
        )


def prepare(handlers: Handlers, work: Work, clock: Clock) -> Ready | WorkAct:
    """Ready to be called, or what is to be done with a job that cannot be."""
    handler = handlers.of(work)
    if handler is None:
        return outcomes.parked(work, now=clock.now())
    try:
        return Ready(work, handler, handler.bind(work.body))
    except InvalidRequest as error:
        return outcomes.misfit(work, error, now=clock.now())
