"""The write lock between processes that share a SQLite file; also tracks which have it open.

SQLite admits one writer and lets the others poll: one may starve until it gets "database is
locked".  So writers first queue up in the kernel, with flock() on files beside the database, which
the system releases when a process exits:

    -next   held by the first writer in the queue; only that one waits for `-turn`
    -turn   held by the process that writes.  Afterwards it queues up again, so none starves
    -open   shared by every process that has the store open; an exclusive lock proves that no
            other process has

Opening and closing the store need the write lock, too.  While `-turn` begins with `!` a sync has
failed and the content of the log is uncertain: every process closes the store, and the first that
has it open alone makes the log durable (see log_sync.py).

The disk may be full or failing just when the mark must be written.  So the files get their full
size when they are created and are overwritten in place, which needs no space.  If the mark still
cannot be written, this process remembers it and keeps the write lock: no other process can build on
the log before the mark is written.

A wait for flock() cannot be interrupted, so a thread of its own does it, started on first use.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import weakref
from contextlib import suppress
from pathlib import Path

from penstock.domain.errors import StoreUnavailable
from penstock.store.database import WriteLockTimeout
from penstock.supervision.health import NodeHealth
from penstock.supervision.threads import SupervisedThread

PATIENCE_MS = 15_000
_KINDS = ("next", "turn", "open")
_FAILED_SYNC, _NO_MARK = b"!", b"\0"
_AGREED_BYTES = 64

_log = logging.getLogger("penstock.store")
_all: weakref.WeakSet[WriteLock] = weakref.WeakSet()


class WriteLock:
    """One per process and file; used by one thread at a time."""

    def __init__(
        self, path: Path, *, patience_ms: int = PATIENCE_MS, health: NodeHealth | None = None
    ) -> None:
        self._path = path
        self._health = health or NodeHealth()
        self._patience_s = patience_ms / 1000
        self.is_acquired = False
        self._agreed = ""
        self._mutex = threading.Lock()
        self._is_waiting = False  # the thread waits in the kernel, or is about to
        self._is_wanted = False  # … and a caller waits for it
        self._granted = threading.Semaphore(0)
        self._asked = threading.Semaphore(0)
        self._thread: SupervisedThread | None = None
        self._is_closed = False
        self._is_mark_unwritten = False
        self._wait_error: Exception | None = None
        self._files: list[int] = []
        try:
            for kind in _KINDS:
                self._files.append(_open(path, kind))
            self._next, self._writing, self._open = self._files
            fcntl.flock(self._next, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(self._next, fcntl.LOCK_UN)
        except BlockingIOError:
            pass  # another process holds it, so this file system has locks
        except OSError as error:
            self._close_files()
            if error.filename is not None:
                raise StoreUnavailable(f"cannot open {path}: {error}") from error
            _log.warning("no locks beside %s (%s): use it from one process only", path, error)
        _all.add(self)

    def acquire(self, *, wait: bool = True, patience_ms: int | None = None) -> bool:
        """Acquire the write lock; raises WriteLockTimeout.

        `patience_ms`: how long to wait; None: as constructed.
        """
        if self.is_acquired or not self._files:
            self._write_mark()
            return True
        self.is_acquired = not self._is_waiting and self._try_acquire()
        if not self.is_acquired and wait:
            self._wait(self._patience_s if patience_ms is None else patience_ms / 1000)
            self.is_acquired = True
        return self.is_acquired

    def release(self) -> None:
        if self.is_acquired and self._write_mark():
            self.is_acquired = False
            fcntl.flock(self._writing, fcntl.LOCK_UN)

    def enter(self) -> bool:
        """With the write lock: register as having the store open; True if no other process has.

        Then none can open it before `admit_others`.  Raises StoreUnavailable if the disk fails.
        """
        if not self._files:
            return True
        try:
            fcntl.flock(self._open, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(self._open, fcntl.LOCK_SH)
            return False
        self._write_agreed()  # clear the text of processes that have exited
        return True

    def is_alone(self) -> bool:
        """With the write lock: whether no other process has the store open."""
        if not self._files:
            return True
        try:
            fcntl.flock(self._open, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            fcntl.flock(self._open, fcntl.LOCK_SH)  # a failed attempt drops the shared lock
        return True

    def admit_others(self) -> None:
        """With the write lock, after `enter`: let other processes open the store."""
        if self._files:
            fcntl.flock(self._open, fcntl.LOCK_SH)

    def leave(self) -> None:
        if self._files:
            fcntl.flock(self._open, fcntl.LOCK_UN)

    @property
    def has_failed_sync(self) -> bool:
        """Whether a sync has failed in any process and the log has not been made durable since."""
        if not self._files:
            return False
        return self._is_mark_unwritten or os.pread(self._writing, 1, 0) == _FAILED_SYNC

    def mark_failed_sync(self) -> None:
        """With the write lock: keep every process from building on the log.  Never raises."""
        if self._files:
            self._is_mark_unwritten = True
            self._write_mark()

    def _write_mark(self) -> bool:
        """True if other processes can see the mark, or there is nothing to mark."""
        if self._is_mark_unwritten:
            try:
                os.pwrite(self._writing, _FAILED_SYNC, 0)
            except OSError:
                return False
            self._is_mark_unwritten = False
        return True

    def clear_failed_sync(self) -> None:
        """With the write lock: the log is durable."""
        if self.has_failed_sync:
            _overwrite(self._writing, _NO_MARK)
            self._is_mark_unwritten = False

    @property
    def agreed(self) -> str:
        """With the write lock: the text that the first process to open the store set, or ""."""
        if not self._files:
            return ""
        return os.pread(self._open, _AGREED_BYTES, 0).rstrip(b"\0").decode()

    def agree(self, text: str) -> str:
        """With the write lock: set the shared text unless it is set; returns what it is now."""
        if not self._files:
            return text
        self._agreed = self.agreed or text
        self._write_agreed()
        return self._agreed

    def _write_agreed(self) -> None:
        _overwrite(self._open, self._agreed.encode().ljust(_AGREED_BYTES, b"\0"))

    def close(self) -> None:
        with self._mutex:
            if self._is_closed:
                return
            self._is_closed = True
            if not self._is_waiting:
                self._close_files()
        self._asked.release()

    def _try_acquire(self) -> bool:
        try:
            fcntl.flock(self._next, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise StoreUnavailable(f"cannot lock the store: {error}") from error
        try:
            fcntl.flock(self._writing, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            fcntl.flock(self._next, fcntl.LOCK_UN)
        return True

    def _wait(self, patience_s: float) -> None:
        with self._mutex:
            self._is_wanted = True
            if not self._is_waiting:
                self._is_waiting = True
                self._asked.release()
        if self._thread is None:
            self._thread = SupervisedThread(
                "penstock-write-lock",
                self._wait_in_kernel,
                health=self._health,
                on_failure=self._fail_wait,
            )
            self._thread.start()
        is_granted = self._granted.acquire(timeout=patience_s)
        with self._mutex:
            error, self._wait_error = self._wait_error, None
            if error is not None:
                raise StoreUnavailable(f"cannot lock the store: {error}") from error
            if not is_granted and not self._granted.acquire(blocking=False):
                self._is_wanted = False
                raise WriteLockTimeout(
                    "another process has been writing to the store for"
                    f" {patience_s:g} s; is it stopped?"
                )

    def _wait_in_kernel(self) -> None:
        while True:
            self._asked.acquire()
            if self._is_closed and not self._is_waiting:
                return
            error = self._lock_both()
            with self._mutex:
                self._is_waiting = False
                if self._is_closed:
                    self._close_files()
                    return
                if self._is_wanted:
                    self._is_wanted = False
                    self._wait_error = error
                    self._granted.release()
                elif error is None:  # the caller has given up
                    fcntl.flock(self._writing, fcntl.LOCK_UN)

    def _fail_wait(self, error: StoreUnavailable) -> None:
        with self._mutex:
            self._is_waiting = False
            if self._is_wanted:
                self._is_wanted = False
                self._wait_error = error
                self._granted.release()

    def _lock_both(self) -> OSError | None:
        try:
            fcntl.flock(self._next, fcntl.LOCK_EX)
            try:
                fcntl.flock(self._writing, fcntl.LOCK_EX)
            finally:
                fcntl.flock(self._next, fcntl.LOCK_UN)
        except OSError as error:
            return error
        return None

    def _close_files(self) -> None:
        files, self._files = self._files, []
        self.is_acquired = False
        for file in files:
            os.close(file)


def _open(path: Path, kind: str) -> int:
    name = path.with_name(f"{path.name}-{kind}")
    flags = os.O_RDWR | os.O_CLOEXEC
    try:
        file = os.open(name, flags)
    except FileNotFoundError:
        file = os.open(name, flags | os.O_CREAT, 0o600)
        if path.exists():  # users that may write to the database need the lock, too
            os.fchmod(file, path.stat().st_mode & 0o777)
    _reserve(file)
    return file


def _reserve(file: int) -> None:
    """Extend the file to its full size, which allocates its space on the disk.

    Harmless beside another process: existing content is kept, and zeros mean the same as nothing.
    """
    size = os.fstat(file).st_size
    if size < _AGREED_BYTES:
        with suppress(OSError):  # the disk is full: a later write into it reports that
            os.pwrite(file, bytes(_AGREED_BYTES - size), size)


def _overwrite(file: int, content: bytes) -> None:
    try:
        os.pwrite(file, content, 0)
    except OSError as error:
        raise StoreUnavailable(f"cannot write beside the store: {error}") from error


def _forget_in_child() -> None:
    """After fork(): a child must not keep our locks.  Closing its descriptors releases nothing."""
    for write_lock in list(_all):
        write_lock._close_files()


os.register_at_fork(after_in_child=_forget_in_child)
