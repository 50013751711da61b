"""Wait for other threads or processes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

_STEP_S = 0.002
_PATIENCE_S = 60.0  # for things that take a moment, on a busy machine


def eventually(look: Callable[[], T], *, within_s: float = _PATIENCE_S) -> T:
    """Return the first truthy result of `look`."""
    until = monotonic() + within_s
    while not (seen := look()):
        assert monotonic() < until, "it did not happen in time"
        threading.Event().wait(_STEP_S)
    return seen
