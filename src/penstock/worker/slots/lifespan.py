"""Hooks of an application, run at the start and the end of each process that runs jobs."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable

from penstock.worker.error_text import error_text
from penstock.worker.slots.loop_thread import LoopThread

_log = logging.getLogger("penstock.worker")

Hook = Callable[[], object]


class StartFailed(RuntimeError):
    """A start hook raised an exception: no job may run in this process."""


class WorkerHooks:
    """Sync functions, and async ones, which run on the event loop of the async jobs."""

    def __init__(self) -> None:
        self.starting: list[Hook] = []
        self.stopping: list[Hook] = []


class Lifespan:
    def __init__(self, hooks: WorkerHooks, loop: LoopThread) -> None:
        self._hooks = hooks
        self._loop = loop
        self._is_started = False

    def start(self) -> None:
        """Run the start hooks once, in the order they were declared; raises StartFailed."""
        if self._is_started:
            return
        for hook in self._hooks.starting:
            try:
                self._call(hook)
            except (Exception, SystemExit) as error:
                text = f"the start hook {_name(hook)} failed: {error_text(error)}"
                raise StartFailed(text) from error
        self._is_started = True

    def stop(self) -> None:
        """Run the stop hooks in reverse order; a failure is logged, and the others still run."""
        if not self._is_started:
            return
        self._is_started = False
        for hook in reversed(self._hooks.stopping):
            try:
                self._call(hook)
            except (Exception, SystemExit):
                _log.exception("the stop hook %s failed", _name(hook))

    def _call(self, hook: Hook) -> None:
        result = hook()
        if inspect.isawaitable(result):
            self._loop.wait(result)


def _name(hook: Hook) -> str:
    return getattr(hook, "__qualname__", None) or repr(hook)
