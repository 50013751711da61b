"""Wake-ups between processes that share a SQLite file: one socket per process, in one folder.

The folder is in the user's runtime or temporary folder, is named after the file's device and inode,
and is accessible to this user only.  A new process announces itself to the others, so that a commit
need not list the folder; a process that finds a socket without a reader removes it.

A datagram is one letter and, for wake-ups, a text of hints (store/announcements.py).  The socket of
a process that listens for them is named `….listening`.

An application's own transaction sends no wake-up.  So a process that listens also checks for
changes a few times a second.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from penstock.store.announcements import PAUSE_MS, Announcements, Hints, decode, encode
from penstock.supervision.health import NodeHealth
from penstock.supervision.threads import SupervisedThread

CHECK_MS = 250
_QUIET_CHECKS = 4  # our own commits may hide an application's: every fourth check ignores that
_HELLO, _CLOSE, _WAKE = b"h", b"l", b"w"
_LISTENING, _NOT_LISTENING = ".listening", ".idle"
_LONGEST = 1 << 16
_TRIES, _BETWEEN_TRIES_S = 20, 0.01  # for datagrams that must arrive
_CLOSING_PATIENCE_S = 2.0
_BUSY_LOOPS = 200  # wake-ups without a pause after which we check for changes, too

_log = logging.getLogger(__name__)


class SqliteWakeups:
    def __init__(
        self,
        path: Path,
        *,
        on_wakeup: Callable[[Hints], None],
        find_ready: Callable[[], Mapping[int, int]],
        on_close_request: Callable[[], None],
        health: NodeHealth,
    ) -> None:
        """`find_ready`: queues with something to claim, if anything changed since the last call."""
        self._on_wakeup, self._find_ready = on_wakeup, find_ready
        self._on_close_request = on_close_request
        self._lock = threading.Lock()
        self._announcements = Announcements()
        self._listeners: list[str] = []  # addresses of peers that listen
        self._is_listening = False
        self._is_closing = False
        self._is_quiet = True  # no announcement since the last check
        self._looks = self._loops = 0
        self._never = threading.Event()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._address: Path | None = None
        try:
            self._address = _bind(self._socket, path)
        except OSError as error:
            _log.info("no wake-ups from other processes, polling instead: %s", error)
        self._thread = SupervisedThread("penstock-wakeups", self._run, health=health)
        self._thread.start()
        self._introduce()

    def announce(self, hints: Hints) -> None:
        """Announce it to other processes soon, together with later commits up to then."""
        self._is_quiet = False
        if self._listeners and not self._is_closing:
            self._announcements.add(hints)

    def listen(self) -> None:
        """Receive wake-ups from other processes from now on."""
        with self._lock:
            if self._is_listening or self._is_closing:
                return
            self._is_listening = True
            if self._address is not None:
                renamed = self._address.with_suffix(_LISTENING)
                with suppress(OSError):
                    self._address = self._address.rename(renamed)
        self._announcements.wake()
        self._introduce()

    def close(self) -> None:
        """Announce what is pending, and stop."""
        if self._is_closing:
            return
        self._is_closing = True
        self._announcements.wake()
        if self._thread.join(_CLOSING_PATIENCE_S):
            self._announcements.close()
            self._socket.close()
        if self._address is not None:
            with suppress(OSError):  # the next sender removes it
                self._address.unlink()
            with suppress(OSError):
                self._address.parent.rmdir()  # if we were the last

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._announcements.signal, select.POLLIN)
        if self._address is not None:
            poll.register(self._socket, select.POLLIN)
        pause = select.poll()
        pause.register(self._socket, select.POLLIN)
        while not self._is_closing:
            ready = {file for file, _ in poll.poll(CHECK_MS if self._is_listening else None)}
            if self._socket.fileno() in ready:
                self._receive()
            self._loops += 1
            if self._is_listening and (not ready or self._loops % _BUSY_LOOPS == 0):
                self._poll_for_changes()
            self._thread.part.moves += 1
            if self._announcements.signal in ready:
                self._announcements.clear_signal()
                self._send_announcements()
                if not self._is_closing:
                    pause.poll(PAUSE_MS)
        self._send_announcements()

    def _poll_for_changes(self) -> None:
        """Find commits of programs that do not announce them."""
        is_quiet, self._is_quiet = self._is_quiet, True
        self._looks += 1
        if is_quiet or self._looks % _QUIET_CHECKS == 0:
            woken = self._find_ready()
            if woken:
                self._on_wakeup(Hints(woken))

    def _receive(self) -> None:
        texts: list[str] = []
        for datagram in self._datagrams():
            match datagram[:1]:
                case b"h":
                    self._find_listeners()
                case b"l":
                    self._on_close_request()
                case b"w":
                    texts.append(datagram[1:].decode())
        hints = decode(texts)
        if hints:
            self._is_quiet = False
            self._on_wakeup(hints)

    def _datagrams(self) -> Iterator[bytes]:
        with suppress(BlockingIOError):
            while True:
                yield self._socket.recv(_LONGEST)

    def _send_announcements(self) -> None:
        for text in encode(self._announcements.take()):
            for peer in self._listeners:
                self._send(_WAKE + text.encode(), peer)

    def _introduce(self) -> None:
        self._find_listeners()
        for peer in self._peers():
            self._send_with_retries(_HELLO, peer)

    def _find_listeners(self) -> None:
        self._listeners = [peer for peer in self._peers() if peer.endswith(_LISTENING)]

    def _peers(self) -> list[str]:
        if self._address is None:
            return []
        with self._lock:
            place = self._address
        with suppress(OSError):
            return [str(one) for one in place.parent.iterdir() if one.stem != place.stem]
        return []

    def _send_with_retries(self, datagram: bytes, peer: str) -> None:
        for _ in range(_TRIES):
            if self._send(datagram, peer):
                return
            self._never.wait(_BETWEEN_TRIES_S)

    def _send(self, datagram: bytes, peer: str) -> bool:
        """False: its socket is full, so it has wake-ups to read already."""
        try:
            self._socket.sendto(datagram, peer)
        except BlockingIOError:
            return False
        except (ConnectionRefusedError, FileNotFoundError):
            with suppress(OSError):
                os.unlink(peer)  # its process is gone
            self._find_listeners()
        except OSError as error:
            _log.debug("no wake-up for %s: %s", peer, error)
        return True


def ask_to_close(path: Path) -> None:
    """Ask every process that has the store open to close it: the log must be made durable."""
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.setblocking(False)
        for peer in _folder(path).iterdir():
            with suppress(OSError):  # it has exited, or its socket is full: it is asked again
                one.sendto(_CLOSE, str(peer))


def _bind(one: socket.socket, path: Path) -> Path:
    """Bind to a unique name: the socket's inode number."""
    folder = _folder(path)
    place = folder / f"{os.fstat(one.fileno()).st_ino}{_NOT_LISTENING}"
    for is_last in (False, True):
        folder.mkdir(mode=0o700, exist_ok=True)
        _refuse_foreign(folder)
        try:
            one.bind(str(place))
        except FileNotFoundError:  # the last process to leave has just removed the folder
            if is_last:
                raise
        else:
            break
    return place


def _folder(path: Path) -> Path:
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    file = path.stat()
    return Path(base) / f"penstock-{os.getuid()}-{file.st_dev:x}-{file.st_ino:x}"


def _refuse_foreign(folder: Path) -> None:
    """In a world-writable folder another user may have created it first."""
    found = folder.lstat()
    is_ours = found.st_uid == os.getuid() and not found.st_mode & 0o077
    if not stat.S_ISDIR(found.st_mode) or not is_ours:
        raise PermissionError(f"{folder} is accessible to other users")
