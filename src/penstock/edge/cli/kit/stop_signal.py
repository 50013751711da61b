"""Wait for SIGTERM or Ctrl-C."""

from __future__ import annotations

import signal
import socket
from collections.abc import Collection, Iterator
from contextlib import contextmanager


class StopSignal:
    """Create it in the main thread before the work starts; `wait` returns once a signal arrives.

    The kernel writes the number of each signal into a socket, where it stays until it is read.  A
    Python handler that sets an event would not do: it runs only between two bytecodes of this
    thread, so during a wait it finds the event's lock taken, or never runs.
    """

    def __init__(self, numbers: Collection[int] = (signal.SIGINT, signal.SIGTERM)) -> None:
        self._numbers = frozenset(numbers)
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)  # required by set_wakeup_fd
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, lambda *_: None)  # the default would kill the process

    def wait(self, timeout_s: float | None = None) -> bool:
        """True once a signal arrived; False if none did within that time."""
        self._reader.settimeout(timeout_s)
        try:
            while self._reader.recv(1)[0] not in self._numbers:
                pass
        except TimeoutError:
            return False
        return True


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Inside the block, SIGTERM does what Ctrl-C does, so that locks are released."""
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
