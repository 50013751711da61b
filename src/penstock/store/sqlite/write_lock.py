"""Processes that share a SQLite file: whose turn it is to write, and who has it open.

SQLite lets one writer in; the others would look again and again, whoever comes at the right moment
gets in, and after a while they are told that the database is locked.  So writers line up in the
kernel first, with locks on files beside the database that end with whoever holds them:

    -next   whoever stands first in line; only this one waits for the turn
    -turn   whoever writes.  It goes back to the end of the line, so nobody is left out
    -open   shared by everybody who has the store open: to hold it alone is to be alone

A turn is also needed to open and to close.  While `-turn` begins with `!` a sync has failed, and
what the log holds is not certain: everybody lets go of the store, and the first one that is alone
with it settles the log (see sqlite_log.py).

The disk may be full or failing just when something must be noted here.  So the files get their
content when they are made and are only overwritten in place, which needs no space.  A doubt that
still cannot be written is kept in memory, and with it the write lock: no other process can build on
the log before it is written.

A wait in the kernel cannot be cut short, so a thread does it, made when it is first needed.
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
from penstock.store.database import Occupied
from penstock.supervision.health import Health
from penstock.supervision.threads import SupervisedThread

PATIENCE_MS = 15_000
_KINDS = ("next", "turn", "open")
_DOUBT, _TRUST = b"!", b"\0"
_LONGEST_WORD = 64

_log = logging.getLogger("penstock.store")
_all: weakref.WeakSet[Turns] = weakref.WeakSet()


class Turns:
    """Used by one thread at a time."""

    def __init__(
        self, path: Path, *, patience_ms: int = PATIENCE_MS, health: Health | None = None
    ) -> None:
        self._path = path
        self._health = health or Health()
        self._patience_s = patience_ms / 1000
        self.is_ours = False
        self._said = ""
        self._mutex = threading.Lock()
        self._is_in_line = False  # the thread waits in the kernel, or is about to
        self._is_wanted = False  # … and somebody waits for it
        self._granted = threading.Semaphore(0)
        self._asked = threading.Semaphore(0)
        self._thread: SupervisedThread | None = None
        self._is_closed = False
        self._is_doubt_unwritten = False
        self._line_error: Exception | None = None
        self._files: list[int] = []
        try:
            for kind in _KINDS:
                self._files.append(_open(path, kind))
            self._next, self._turn, self._open = self._files
            fcntl.flock(self._next, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(self._next, fcntl.LOCK_UN)
        except BlockingIOError:
            pass  # somebody stands there: so it works
        except OSError as error:
            self._close_files()
            if error.filename is not None:
                raise StoreUnavailable(f"cannot open {path}: {error}") from error
            _log.warning("no locks beside %s (%s): use it from one process only", path, error)
        _all.add(self)

    @property
    def is_known(self) -> bool:
        """False: this file system has no such locks; everybody seems to be alone."""
        return bool(self._files)

    def take(self, *, wait: bool = True, patience_ms: int | None = None) -> bool:
        """It is ours until `give_back`.  Raises Occupied if that takes too long.

        `patience_ms`: how long that is, if not as long as usual.
        """
        if self.is_ours or not self._files:
            self._write_doubt()
            return True
        self.is_ours = not self._is_in_line and self._try()
        if not self.is_ours and wait:
            self._wait(self._patience_s if patience_ms is None else patience_ms / 1000)
            self.is_ours = True
        return self.is_ours

    def give_back(self) -> None:
        if self.is_ours and self._write_doubt():
            self.is_ours = False
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    def come_in(self) -> bool:
        """In our turn: whether nobody else has the store open.  Then keep it so until `stay`.

        Raises StoreUnavailable while the disk does not take a note.
        """
        if not self._files:
            return True
        try:
            fcntl.flock(self._open, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(self._open, fcntl.LOCK_SH)
            return False
        self._say()  # what those said who have gone is no longer true
        return True

    def is_alone(self) -> bool:
        """In our turn: whether no other process has the store open."""
        if not self._files:
            return True
        try:
            fcntl.flock(self._open, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            fcntl.flock(self._open, fcntl.LOCK_SH)  # a lock that cannot be had costs the other one
        return True

    def stay(self) -> None:
        """In our turn: others may come in from now on."""
        if self._files:
            fcntl.flock(self._open, fcntl.LOCK_SH)

    def leave(self) -> None:
        if self._files:
            fcntl.flock(self._open, fcntl.LOCK_UN)

    @property
    def is_in_doubt(self) -> bool:
        """Has a sync failed, here or in another process, and nobody has settled the log since?"""
        if not self._files:
            return False
        return self._is_doubt_unwritten or os.pread(self._turn, 1, 0) == _DOUBT

    def doubt(self) -> None:
        """In our turn: from now on nobody builds on the log as it is.  Never raises."""
        if self._files:
            self._is_doubt_unwritten = True
            self._write_doubt()

    def _write_doubt(self) -> bool:
        """True if other processes know of every doubt that this one has."""
        if self._is_doubt_unwritten:
            try:
                os.pwrite(self._turn, _DOUBT, 0)
            except OSError:
                return False
            self._is_doubt_unwritten = False
        return True

    def trust(self) -> None:
        """In our turn: the log is settled."""
        if self.is_in_doubt:
            _overwrite(self._turn, _TRUST)
            self._is_doubt_unwritten = False

    @property
    def said(self) -> str:
        """In our turn: what the first process that has the store open has said, or nothing."""
        if not self._files:
            return ""
        return os.pread(self._open, _LONGEST_WORD, 0).rstrip(b"\0").decode()

    def agree(self, text: str) -> str:
        """In our turn: what the first one who has the store open has said, for all who come."""
        if not self._files:
            return text
        self._said = self.said or text
        self._say()
        return self._said

    def _say(self) -> None:
        _overwrite(self._open, self._said.encode().ljust(_LONGEST_WORD, b"\0"))

    def close(self) -> None:
        with self._mutex:
            if self._is_closed:
                return
            self._is_closed = True
            if not self._is_in_line:
                self._close_files()
        self._asked.release()

    def _try(self) -> bool:
        try:
            fcntl.flock(self._next, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise StoreUnavailable(f"cannot lock the store: {error}") from error
        try:
            fcntl.flock(self._turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            fcntl.flock(self._next, fcntl.LOCK_UN)
        return True

    def _wait(self, patience_s: float) -> None:
        with self._mutex:
            self._is_wanted = True
            if not self._is_in_line:
                self._is_in_line = True
                self._asked.release()
        if self._thread is None:
            self._thread = SupervisedThread(
                "penstock-turn", self._line_up, health=self._health, on_failure=self._fail_line
            )
            self._thread.start()
        is_granted = self._granted.acquire(timeout=patience_s)
        with self._mutex:
            error, self._line_error = self._line_error, None
            if error is not None:
                raise StoreUnavailable(f"cannot lock the store: {error}") from error
            if not is_granted and not self._granted.acquire(blocking=False):
                self._is_wanted = False
                raise Occupied(
                    "another process has been writing to the store for"
                    f" {patience_s:g} s; is it stopped?"
                )

    def _line_up(self) -> None:
        while True:
            self._asked.acquire()
            if self._is_closed and not self._is_in_line:
                return
            error = self._lock_both()
            with self._mutex:
                self._is_in_line = False
                if self._is_closed:
                    self._close_files()
                    return
                if self._is_wanted:
                    self._is_wanted = False
                    self._line_error = error
                    self._granted.release()
                elif error is None:  # it took too long: nobody waits any more
                    fcntl.flock(self._turn, fcntl.LOCK_UN)

    def _fail_line(self, error: StoreUnavailable) -> None:
        with self._mutex:
            self._is_in_line = False
            if self._is_wanted:
                self._is_wanted = False
                self._line_error = error
                self._granted.release()

    def _lock_both(self) -> OSError | None:
        try:
            fcntl.flock(self._next, fcntl.LOCK_EX)
            try:
                fcntl.flock(self._turn, fcntl.LOCK_EX)
            finally:
                fcntl.flock(self._next, fcntl.LOCK_UN)
        except OSError as error:
            return error
        return None

    def _close_files(self) -> None:
        files, self._files = self._files, []
        self.is_ours = False
        for file in files:
            os.close(file)


def _open(path: Path, kind: str) -> int:
    name = path.with_name(f"{path.name}-{kind}")
    flags = os.O_RDWR | os.O_CLOEXEC
    try:
        file = os.open(name, flags)
    except FileNotFoundError:
        file = os.open(name, flags | os.O_CREAT, 0o600)
        if path.exists():  # whoever may write to the database may line up for it
            os.fchmod(file, path.stat().st_mode & 0o777)
    _reserve(file)
    return file


def _reserve(file: int) -> None:
    """Give it its full size, and so its space on the disk.  Harmless beside another process: what
    is there is kept, and zeros mean the same as nothing.
    """
    size = os.fstat(file).st_size
    if size < _LONGEST_WORD:
        with suppress(OSError):  # full already: writing into it may fail later, and is told then
            os.pwrite(file, bytes(_LONGEST_WORD - size), size)


def _overwrite(file: int, content: bytes) -> None:
    try:
        os.pwrite(file, content, 0)
    except OSError as error:
        raise StoreUnavailable(f"cannot write beside the store: {error}") from error


def _forget_in_child() -> None:
    """A child that outlives us must not hold our locks: to close them is not to give them back."""
    for turns in list(_all):
        turns._close_files()


os.register_at_fork(after_in_child=_forget_in_child)
