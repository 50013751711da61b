"""Log lines about a store that is out of reach: one when that begins, one when it ends."""

from __future__ import annotations

import logging

from penstock.domain.errors import StoreUnavailable
from penstock.ports.store import OUTAGES

_log = logging.getLogger(OUTAGES)


class OutageLog:
    """Shared by threads: at worst a line is written twice."""

    def __init__(self, what: str) -> None:
        """`what` cannot be done: "read", "written"."""
        self._what = what
        self._is_down = False

    def failed(self, error: StoreUnavailable) -> None:
        level = logging.DEBUG if self._is_down else logging.WARNING
        self._is_down = True
        _log.log(level, "the store cannot be %s: %s", self._what, error)

    def worked(self) -> None:
        if self._is_down:
            self._is_down = False
            _log.info("the store can be %s again", self._what)
