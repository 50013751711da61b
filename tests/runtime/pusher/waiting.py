"""For what another thread does: wait until it is so."""

from __future__ import annotations

import threading
from collections.abc import Callable

_PAUSE_S = 0.01
_MAX = 2_000


def until(is_so: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(_MAX):
        if is_so():
            return
        pause.wait(_PAUSE_S)
    raise AssertionError("it did not become so")
