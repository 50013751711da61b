"""Logs outages of a store: one line when one begins, and one for recovery.

Callers get an error for each of their requests; logging each would only repeat it.
"""

from __future__ import annotations

import logging
import threading

from penstock.domain.errors import StoreUnavailable
from penstock.ports.store import OUTAGES

_log = logging.getLogger(OUTAGES)


class StoreOutage:
    """Whether the store is failing; shared by all of its connections, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failed_writes = False
        self.is_on = False

    def failed(self, error: StoreUnavailable, *, is_write: bool) -> None:
        with self._lock:
            is_new, self.is_on = not self.is_on, True
            self._failed_writes = self._failed_writes or is_write
        _log.log(logging.WARNING if is_new else logging.DEBUG, "store unavailable: %s", error)

    def worked(self, *, is_write: bool) -> None:
        """A successful write ends any outage; a successful read ends one of reads only.

        Needed only while `is_on`, which can be read without the lock.
        """
        with self._lock:
            was_on = self.is_on
            if is_write:
                self._failed_writes = False
            self.is_on = self._failed_writes
        if was_on and not self.is_on:
            # Also a warning, so that a log with the outage has its end as well.
            _log.warning("store available again")
