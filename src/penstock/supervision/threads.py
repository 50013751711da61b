"""Supervised threads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from penstock.domain.errors import StoreUnavailable
from penstock.supervision.health import Health, NodePart
from penstock.supervision.restarts import Restarts, outage

_log = logging.getLogger("penstock.health")

OnFailure = Callable[[StoreUnavailable], None]


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
        health: Health,
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
