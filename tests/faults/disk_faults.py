"""Which of SQLite's calls to the disk fail now, and how; controlled by the test at run time."""

from __future__ import annotations

import random
from collections.abc import Callable

import apsw

_CODES = {
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "delete": apsw.SQLITE_IOERR_DELETE,
    "read": apsw.SQLITE_IOERR_READ,
    "open": apsw.SQLITE_IOERR_ACCESS,
}


class DiskFaults:
    def __init__(self, cut_power: Callable[[], None], seed: int) -> None:
        self.is_full = False  # no room left: ENOSPC
        self.writes_fail = False  # EIO
        self.syncs_fail = 0.0  # the fraction of syncs that fail
        self.fates: list[bool] = []  # whether the next syncs work, one by one; then as above
        self.failed_sync_keeps = 0.0  # the fraction of sectors that reach the disk nevertheless
        self.is_lying = False  # syncs answer "done" and do nothing
        self.sync_s = 0.0
        self.is_hanging = False  # syncs do not return
        self.is_off = False  # no power: every call fails
        self.calls = 0  # changes only: what a power cut can fall between
        self.cut_at = 0
        self.fail_in = 0  # the n-th call from now fails, once
        self.failed = ""
        self._cut_power = cut_power
        self._dice = random.Random(seed)

    def reached(self) -> bool:
        """Whether a sector of a failed sync reached the disk."""
        return self._dice.random() < self.failed_sync_keeps

    def step(self, call: str) -> None:
        """Called before each access; raises the error for SQLite."""
        if self.is_off:
            raise _io_error(call)
        if self.fail_in:
            self.fail_in -= 1
            if self.fail_in == 0:
                self.failed = call
                raise _io_error(call)
        if call == "read":
            return
        self.calls += 1
        if self.calls == self.cut_at:
            self._cut_power()
            raise _io_error(call)  # for threads that are still running
        if call in ("write", "open") and self.is_full:
            raise apsw.FullError("no space left on device")
        if call in ("write", "truncate") and self.writes_fail:
            raise _io_error(call)
        if call == "sync" and self._fails_to_sync():
            raise _io_error(call)

    def _fails_to_sync(self) -> bool:
        if self.fates:
            return not self.fates.pop(0)
        return self.syncs_fail > 0 and self._dice.random() < self.syncs_fail


def _io_error(call: str) -> apsw.Error:
    error = apsw.IOError(f"the disk failed to {call}")
    setattr(error, "extendedresult", _CODES[call])  # noqa: B010  (not in the stubs)
    return error
