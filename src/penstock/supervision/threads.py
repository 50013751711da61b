"""Supervised threads and tasks: restarted after a failure, which is logged once."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from penstock.domain.errors import StoreUnavailable
from penstock.supervision.health import NodeHealth, NodePart

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0

_log = logging.getLogger("penstock.health")
OnFailure = Callable[[StoreUnavailable], None]


class Restarts:
    """Restarts of one part.  A failure after finished work counts as the first one."""

    def __init__(self, part: NodePart) -> None:
        self._part = part
        self._moves = part.moves
        self._pause_s = 0.0
        self._text = ""

    def failed(self, error: BaseException) -> float:
        """Log and report it; returns how many seconds the part pauses."""
        part, text = self._part, f"{type(error).__name__}: {error}"
        if part.moves != self._moves:
            self._pause_s, self._text = 0.0, ""
        self._moves = part.moves
        self._pause_s = min(max(2 * self._pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        is_new, self._text = text != self._text, text
        if is_new:
            _log.error("%s failed and is being restarted", part.name, exc_info=error)
        else:
            _log.debug("%s failed again: %s", part.name, text)
        part.error = text
        return self._pause_s

    def began(self) -> None:
        self._part.error = None


def outage(error: BaseException) -> StoreUnavailable:
    """The error for requests that waited for a part that failed."""
    if isinstance(error, StoreUnavailable):
        return error
    wrapped = StoreUnavailable(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


class SupervisedThread:
    """Calls `run` until it returns, and again whenever it raises.

    A failure is logged and shown by /healthz, and `on_failure` answers the callers that waited for
    this thread.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[], None],
        *,
        health: NodeHealth,
        part: NodePart | None = None,
        on_failure: OnFailure | None = None,
    ) -> None:
        self._run = run
        self._health = health
        self.part = part or NodePart(name)
        self._on_failure = on_failure
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._supervise, name=name, daemon=True)

    def start(self) -> None:
        self._health.add(self.part)
        try:
            self._thread.start()
        except BaseException:
            self._health.remove(self.part)
            raise

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def join(self, timeout_s: float | None = None) -> bool:
        """Stop restarting it.  Returns whether it has ended."""
        self._is_ending.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _supervise(self) -> None:
        restarts = Restarts(self.part)
        while True:
            restarts.began()
            try:
                self._run()
            except BaseException as error:
                pause_s = restarts.failed(error)
                self._answer_waiting(error)
                if self._is_ending.wait(pause_s):
                    break
            else:
                break
        self._health.remove(self.part)

    def _answer_waiting(self, error: BaseException) -> None:
        if self._on_failure is None:
            return
        try:
            self._on_failure(outage(error))
        except Exception:
            _log.exception("callers that waited for %s were not answered", self.part.name)


def start_logged(
    name: str, run: Callable[[], None], *, on_failure: OnFailure | None = None
) -> threading.Thread:
    """A thread for one piece of work.  If it raises, that is logged and `on_failure` is called."""

    def supervise() -> None:
        try:
            run()
        except BaseException as error:
            _log.exception("%s failed", name)
            if on_failure is not None:
                on_failure(outage(error))

    thread = threading.Thread(target=supervise, name=name, daemon=True)
    thread.start()
    return thread


def start_supervised(
    name: str, run: Callable[[NodePart], Coroutine[Any, Any, None]], *, health: NodeHealth
) -> asyncio.Task[None]:
    """Awaits `run` until it returns or the task is cancelled; restarts it when it raises."""
    part = NodePart(name)

    async def supervise() -> None:
        health.add(part)
        restarts = Restarts(part)
        try:
            while True:
                restarts.began()
                try:
                    return await run(part)
                except Exception as error:
                    await asyncio.sleep(restarts.failed(error))
        finally:
            health.remove(part)

    return asyncio.get_running_loop().create_task(supervise(), name=name)
