"""Wake-ups between processes that share a SQLite file: a socket for each of them, in one folder.

The folder stands in the user's runtime or temporary folder, is named after the file's device and
inode, and is open to this user only.  Whoever comes says hello to those who are there, so that a
commit has nothing to look up; a socket that nobody reads any more is removed by whoever finds it.

A datagram is one letter and, for wake-ups, pairs `queue_no:count`.  Whoever wants to hear of them
has a socket named `.keen`.

Programs that write without us (an application's own transaction) say nothing.  While somebody
listens, a look a few times a second finds out whether anything has changed.
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

from penstock.supervision.health import Health
from penstock.supervision.threads import SupervisedThread

PAUSE_MS = 5  # at most one telling in that time, however many commits there are
LOOK_MS = 250
MOST_QUEUES = 250  # in one datagram
_QUIET_LOOKS = 4  # a stranger's commit may hide behind ours: every so often we look all the same
_HELLO, _LET_GO, _WAKE = b"h", b"l", b"w"
_KEEN, _CALM = ".keen", ".calm"
_LONGEST = 1 << 16
_TRIES, _BETWEEN_TRIES_S = 20, 0.01  # for what must arrive
_CLOSING_PATIENCE_S = 2.0
_BUSY_LOOPS = 200  # so many wake-ups without a pause, and we look around all the same

_log = logging.getLogger(__name__)


class SqliteWakeups:
    def __init__(
        self,
        path: Path,
        *,
        heard: Callable[[Mapping[int, int]], None],
        look: Callable[[], Mapping[int, int]],
        let_go: Callable[[], None],
        health: Health,
    ) -> None:
        """`look`: queues with something to claim, if anything has changed since the last look."""
        self._heard, self._look, self._let_go = heard, look, let_go
        self._lock = threading.Lock()
        self._untold: dict[int, int] = {}
        self._peers: list[str] = []  # those who are keen
        self._is_keen = False
        self._is_closing = False
        self._is_quiet = True  # nobody has told anything since the last look
        self._looks = self._loops = 0
        self._never = threading.Event()
        self._bell, self._rope = os.pipe()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._place: Path | None = None
        try:
            self._place = _bound(self._socket, path)
        except OSError as error:
            _log.info("no wake-ups from other processes, only looks: %s", error)
        self._thread = SupervisedThread("penstock-wakeups", self._run, health=health)
        self._thread.start()
        self._say_hello()

    def announce(self, woken: Mapping[int, int]) -> None:
        """Other processes shall hear of it, soon and together with what comes until then."""
        self._is_quiet = False
        if not self._peers or self._is_closing:
            return
        with self._lock:
            is_first = not self._untold
            for queue_no, count in woken.items():
                self._untold[queue_no] = self._untold.get(queue_no, 0) + count
        if is_first:
            os.write(self._rope, b".")

    def listen(self) -> None:
        """From now on we want to hear what others have committed."""
        with self._lock:
            if self._is_keen or self._is_closing:
                return
            self._is_keen = True
            if self._place is not None:
                keen = self._place.with_suffix(_KEEN)
                with suppress(OSError):
                    self._place = self._place.rename(keen)
        os.write(self._rope, b".")
        self._say_hello()

    def close(self) -> None:
        """Tell what is untold, and go."""
        if self._is_closing:
            return
        self._is_closing = True
        os.write(self._rope, b".")
        if self._thread.join(_CLOSING_PATIENCE_S):
            os.close(self._bell)
            os.close(self._rope)
            self._socket.close()
        if self._place is not None:
            with suppress(OSError):  # the next one to tell something finds out
                self._place.unlink()
            with suppress(OSError):
                self._place.parent.rmdir()  # if we were the last

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._bell, select.POLLIN)
        if self._place is not None:
            poll.register(self._socket, select.POLLIN)
        pause = select.poll()
        pause.register(self._socket, select.POLLIN)
        while not self._is_closing:
            ready = {file for file, _ in poll.poll(LOOK_MS if self._is_keen else None)}
            if self._socket.fileno() in ready:
                self._hear()
            self._loops += 1
            if self._is_keen and (not ready or self._loops % _BUSY_LOOPS == 0):
                self._look_around()
            self._thread.part.moved()
            if self._bell in ready:
                os.read(self._bell, 4096)
                self._tell()
                if not self._is_closing:
                    pause.poll(PAUSE_MS)
        self._tell()

    def _look_around(self) -> None:
        """Has somebody committed who does not tell?"""
        is_quiet, self._is_quiet = self._is_quiet, True
        self._looks += 1
        if is_quiet or self._looks % _QUIET_LOOKS == 0:
            woken = self._look()
            if woken:
                self._heard(woken)

    def _hear(self) -> None:
        woken: dict[int, int] = {}
        for datagram in self._datagrams():
            match datagram[:1]:
                case b"h":
                    self._meet()
                case b"l":
                    self._let_go()
                case b"w":
                    for pair in datagram[1:].decode().split():
                        queue_no, _, count = pair.partition(":")
                        woken[int(queue_no)] = woken.get(int(queue_no), 0) + int(count)
        if woken:
            self._is_quiet = False
            self._heard(woken)

    def _datagrams(self) -> Iterator[bytes]:
        with suppress(BlockingIOError):
            while True:
                yield self._socket.recv(_LONGEST)

    def _tell(self) -> None:
        with self._lock:
            untold, self._untold = list(self._untold.items()), {}
        for start in range(0, len(untold), MOST_QUEUES):
            some = untold[start : start + MOST_QUEUES]
            text = " ".join(f"{queue_no}:{count}" for queue_no, count in some)
            for peer in self._peers:
                self._send(_WAKE + text.encode(), peer)

    def _say_hello(self) -> None:
        self._meet()
        for peer in self._others():
            self._insist(_HELLO, peer)

    def _meet(self) -> None:
        self._peers = [peer for peer in self._others() if peer.endswith(_KEEN)]

    def _others(self) -> list[str]:
        if self._place is None:
            return []
        with self._lock:
            place = self._place
        with suppress(OSError):
            return [str(one) for one in place.parent.iterdir() if one.stem != place.stem]
        return []

    def _insist(self, datagram: bytes, peer: str) -> None:
        for _ in range(_TRIES):
            if self._send(datagram, peer):
                return
            self._never.wait(_BETWEEN_TRIES_S)

    def _send(self, datagram: bytes, peer: str) -> bool:
        """False: its socket is full.  It has enough to hear already."""
        try:
            self._socket.sendto(datagram, peer)
        except BlockingIOError:
            return False
        except (ConnectionRefusedError, FileNotFoundError):
            with suppress(OSError):
                os.unlink(peer)  # its process is gone
            self._meet()
        except OSError as error:
            _log.debug("no wake-up for %s: %s", peer, error)
        return True


def ask_to_let_go(path: Path) -> None:
    """Whoever has the store open shall close it: its log has to be settled."""
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.setblocking(False)
        for peer in _folder(path).iterdir():
            with suppress(OSError):  # it is gone, or has so much to hear that it is asked again
                one.sendto(_LET_GO, str(peer))


def _bound(one: socket.socket, path: Path) -> Path:
    """Bind to a name that nobody else has: the number that the kernel knows the socket by."""
    folder = _folder(path)
    place = folder / f"{os.fstat(one.fileno()).st_ino}{_CALM}"
    for is_last in (False, True):
        folder.mkdir(mode=0o700, exist_ok=True)
        _refuse_foreign(folder)
        try:
            one.bind(str(place))
        except FileNotFoundError:  # the last one to leave has just removed the folder
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
    """In a folder that everybody may write to, somebody else may have been there first."""
    found = folder.lstat()
    is_ours = found.st_uid == os.getuid() and not found.st_mode & 0o077
    if not stat.S_ISDIR(found.st_mode) or not is_ours:
        raise PermissionError(f"{folder} is not ours alone")
