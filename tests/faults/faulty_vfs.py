"""SQLite's view of the faulty disk: a VFS over the ordinary one that forgets, fails and tears.

Shared memory and locks pass through to the base VFS, so WAL works as it does without us. Real syncs
are left out: the page cache outlives our power cuts, what is "on the disk" is `disk.py`'s word.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path
from typing import Any

import apsw

from tests.faults.directory import Directory
from tests.faults.disk import FileOnDisk
from tests.faults.disk_faults import DiskFaults

BASE = "unix"
NAME = "faulty"
_STEP_S = 0.01


class FaultyVFS(apsw.VFS):
    """Registered as the default before the broker opens anything."""

    def __init__(self, directory: Directory, trouble: DiskFaults) -> None:
        self.directory = directory
        self.trouble = trouble
        self.lock = threading.RLock()
        super().__init__(NAME, BASE, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        path = _path(name)
        if path is None:
            return apsw.VFSFile(BASE, name, flags)  # a nameless temporary file
        with self.lock:
            is_new = not path.exists()
            if is_new:
                self.trouble.step("open")
            file = FaultyFile(self, name, flags)
            file.disk = self.directory.opened(path, is_new=is_new)
            file.reported_syncs = file.disk.failed_syncs
            file.is_log = bool(flags[0] & (apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL))
            return file

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        with self.lock:
            self.trouble.step("delete")
            super().xDelete(filename, False)
            path = Path(filename)
            self.directory.deleted(path)
            if syncdir:
                self.directory.synced(path.parent)

    def excepthook(self, *_: object) -> bool:
        return True  # the failures are ours; the broker reports them


class FaultyFile(apsw.VFSFile):
    disk: FileOnDisk
    is_log: bool
    reported_syncs: int  # failed syncs; Linux reports each once per open descriptor

    def __init__(self, vfs: FaultyVFS, name: Any, flags: list[int]) -> None:
        self._vfs = vfs
        self._has_synced_name = False
        super().__init__(BASE, name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._vfs.trouble.step("read")
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        with self._vfs.lock:
            self._vfs.trouble.step("write")
            self.disk.before_write(offset, len(data))
            super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        with self._vfs.lock:
            self._vfs.trouble.step("truncate")
            self.disk.before_truncate(newsize)
            super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        trouble = self._vfs.trouble
        if trouble.sync_s:
            time.sleep(trouble.sync_s)
        while trouble.is_hanging:
            time.sleep(_STEP_S)
        with self._vfs.lock:
            try:
                trouble.step("sync")
            except apsw.Error:
                self.disk.sync_failed(trouble.reached)
                self.reported_syncs = self.disk.failed_syncs
                raise
            if self.reported_syncs < self.disk.failed_syncs:
                self.reported_syncs = self.disk.failed_syncs
                raise apsw.IOError("a sync has failed since the last one")
            if trouble.is_lying:
                return
            self.disk.synced()
            if self.is_log and not self._has_synced_name:
                # As os_unix.c does: a new journal or WAL takes its directory with it.
                self._has_synced_name = True
                self._vfs.directory.synced(self.disk.path.parent)

    def excepthook(self, *_: object) -> bool:
        return True


class Connection(apsw.Connection):
    """SQLite's close never reports disk errors, but a VFS in Python makes apsw raise them.

    A read-only connection meets some at every close: it may not lock the file to tidy up the log.
    """

    def close(self, force: bool = False) -> None:
        with contextlib.suppress(apsw.IOError, apsw.FullError):
            super().close(force)


def watch_directory_syncs(vfs: FaultyVFS) -> None:
    """The broker may sync a directory itself, past SQLite."""
    real = os.fsync

    def fsync(fd: Any) -> None:
        real(fd)
        number = fd if isinstance(fd, int) else fd.fileno()
        path = Path(os.readlink(f"/proc/self/fd/{number}"))
        if path.is_dir():
            with vfs.lock:
                vfs.directory.synced(path)

    os.fsync = fsync


def _path(name: Any) -> Path | None:
    if name is None:
        return None
    return Path(name.filename() if isinstance(name, apsw.URIFilename) else name)
