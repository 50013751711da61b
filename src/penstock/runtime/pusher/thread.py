"""The thread that runs the pusher's steps, when it is woken or a step is due."""

from __future__ import annotations

import logging
import threading

from penstock.domain.errors import PenstockError
from penstock.ports.clock import Clock
from penstock.ports.sender import Sender
from penstock.runtime.pusher.pusher import Pusher
from penstock.supervision.health import NodeHealth, NodePart
from penstock.supervision.threads import SupervisedThread

_log = logging.getLogger("penstock.push")
_AFTER_ERROR_MS = 1_000
_DRAIN_STEP_MS = 100
_LONGEST_MS = 60_000  # the clock may be set forward


class WakeupEvent:
    """Set from any thread; one thread waits for it."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def wake(self) -> None:
        if not self._event.is_set():
            self._event.set()

    def wait(self, ms: int) -> None:
        self._event.wait(ms / 1000)
        self._event.clear()


class PusherThread:
    def __init__(
        self,
        pusher: Pusher,
        sender: Sender,
        clock: Clock,
        wakeup: WakeupEvent,
        *,
        drain_ms: int,
        health: NodeHealth | None = None,
        stuck_ms: int | None = None,
    ) -> None:
        """`drain_ms`: how long a stop waits for requests in flight.

        `stuck_ms`: how long one step may take before the pusher counts as stuck.
        """
        self.pusher = pusher
        self._sender = sender
        self._clock = clock
        self._wakeup = wakeup
        self._drain_ms = drain_ms
        self._stopped = threading.Event()
        self._is_stepping = False
        self._part = NodePart("pusher", stuck_ms=stuck_ms, has_work=lambda: self._is_stepping)
        self._thread = SupervisedThread(
            "penstock-pusher", self._run, health=health or NodeHealth(), part=self._part
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Send nothing new; wait for requests in flight, then abort them and release their leases.

        May be called twice.
        """
        self._stopped.set()
        self._wakeup.wake()
        self._thread.join()
        self._sender.close()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._wakeup.wait(self._step())
        self.pusher.stop_claiming()
        until = self._clock.now() + self._drain_ms
        self._step()
        while self.pusher.in_flight and self._clock.now() < until:
            self._wakeup.wait(_DRAIN_STEP_MS)
            self._step()
        self._sender.close()
        self._step()  # releases the leases of aborted requests

    def _step(self) -> int:
        """Returns the longest time until the next step, in milliseconds."""
        self._is_stepping = True
        try:
            pause_ms = self.pusher.tick(self._clock.now()) - self._clock.now()
        except PenstockError as error:
            _log.warning("the pusher could not take a step: %s", error)
            pause_ms = _AFTER_ERROR_MS
        finally:
            self._is_stepping = False
        self._part.moves += 1
        return max(1, min(pause_ms, _LONGEST_MS))
