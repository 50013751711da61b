"""Restarts of supervised threads and tasks: one log entry per failure, and growing pauses."""

from __future__ import annotations

import logging

from penstock.domain.errors import StoreUnavailable
from penstock.supervision.health import NodePart

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0

_log = logging.getLogger("penstock.health")


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
