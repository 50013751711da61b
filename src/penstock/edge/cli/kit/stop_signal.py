"""A command that goes on until it is told to end, by SIGTERM or Ctrl-C."""

from __future__ import annotations

import signal
import socket
from collections.abc import Collection


class StopSignal:
    """To be made before the work begins, in the main thread; `wait` returns when told.

    The system itself puts the number of a signal into a socket, where it lies until somebody looks.
    A handler in Python that sets an event is run only between two steps of this thread: one that
    comes while the event is being waited for finds its lock taken, or is never run.
    """

    def __init__(self, numbers: Collection[int] = (signal.SIGINT, signal.SIGTERM)) -> None:
        self._numbers = frozenset(numbers)
        self._heard, self._told = socket.socketpair()
        self._told.setblocking(False)  # as Python asks of it
        signal.set_wakeup_fd(self._told.fileno(), warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, lambda *_: None)  # else it would end us there and then

    def wait(self) -> None:
        while self._heard.recv(1)[0] not in self._numbers:
            pass
