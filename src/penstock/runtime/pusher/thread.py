"""The thread that steps: whenever something rings, and when a step is due."""

from __future__ import annotations

import logging
import threading

from penstock.domain.errors import PenstockError
from penstock.ports.clock import Clock
from penstock.ports.sender import Sender
from penstock.runtime.pusher.pusher import Pusher

_log = logging.getLogger("penstock.push")
_AFTER_ERROR_MS = 1_000
_DRAIN_STEP_MS = 100
_LONGEST_MS = 60_000  # a clock may be set forward


class Bell:
    """Rung from any thread, heard by one."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def ring(self) -> None:
        if not self._event.is_set():
            self._event.set()

    def wait(self, ms: int) -> None:
        self._event.wait(ms / 1000)
        self._event.clear()


class PusherThread:
    def __init__(
        self, pusher: Pusher, sender: Sender, clock: Clock, bell: Bell, *, drain_ms: int
    ) -> None:
        """`drain_ms`: how long requests that are under way may take at a stop."""
        self.pusher = pusher
        self._sender = sender
        self._clock = clock
        self._bell = bell
        self._drain_ms = drain_ms
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-pusher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Nothing new is sent; what is under way is waited for, then broken off and given back.

        Twice does no harm.
        """
        self._stopped.set()
        self._bell.ring()
        if self._thread.is_alive():
            self._thread.join()
        self._sender.close()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._bell.wait(self._step())
        self.pusher.stop_claiming()
        until = self._clock.now() + self._drain_ms
        self._step()
        while self.pusher.under_way and self._clock.now() < until:
            self._bell.wait(_DRAIN_STEP_MS)
            self._step()
        self._sender.close()
        self._step()  # what was broken off is given back

    def _step(self) -> int:
        """Returns how long nothing is to be done, at most."""
        try:
            pause_ms = self.pusher.tick(self._clock.now()) - self._clock.now()
        except PenstockError as error:
            _log.warning("the pusher could not go on: %s", error)
            pause_ms = _AFTER_ERROR_MS
        except Exception:
            _log.exception("the pusher failed")
            pause_ms = _AFTER_ERROR_MS
        return max(1, min(pause_ms, _LONGEST_MS))
