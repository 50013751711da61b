"""Wake-ups between nodes: a table of hints in the server's memory, which each node polls.

MariaDB has no notifications.  A poll every 20 ms costs the server little: it is one lookup in a
table of a few rows.  A node that hears nothing for a while polls ten times a second.
If wake-ups fail, waiting claims poll from time to time.
"""

from __future__ import annotations

import logging
import select
import threading
from collections.abc import Callable

from penstock.domain.errors import PenstockError
from penstock.store.announcements import Announcements, Hints, decode, encode
from penstock.store.database import Collision, Row
from penstock.store.mariadb.connection import MariadbDatabase
from penstock.supervision.health import NodeHealth
from penstock.supervision.threads import SupervisedThread

MAX_CHARS = 1_000  # of a hint, as its column has it
NO_NODE = 0  # the sender's number of a caller's transaction
_BUSY_POLL_MS = 20
_IDLE_POLL_MS = 100
_IDLE_AFTER = 50  # polls without a hint
_FORGET_EVERY = 500  # polls, of 10 ms at least
_PAUSE_MS = 10  # at most one announcement in this time, however many commits there are
_PATIENCE_S = 5.0
_FIRST_BACK_OFF_S = 0.1
_LONGEST_BACK_OFF_S = 10.0

_log = logging.getLogger(__name__)


class MariadbWakeups:
    def __init__(
        self,
        open_database: Callable[[], MariadbDatabase],
        *,
        on_wakeup: Callable[[Hints], None],
        health: NodeHealth,
    ) -> None:
        self._open_database = open_database
        self._on_wakeup = on_wakeup
        self._announcements = Announcements()
        self._is_closing = threading.Event()
        self.is_listening = threading.Event()
        self._thread = SupervisedThread("penstock-wakeups", self._run, health=health)
        self._thread.start()

    def announce(self, hints: Hints) -> None:
        """Announce it to other nodes soon, together with later commits up to then."""
        if not self._is_closing.is_set():
            self._announcements.add(hints)

    def close(self) -> None:
        """Announce what is pending, and stop."""
        if self._is_closing.is_set():
            return
        self._is_closing.set()
        self._announcements.wake()
        if self._thread.join(_PATIENCE_S):
            self._announcements.close()

    def _run(self) -> None:
        back_off_s = _FIRST_BACK_OFF_S
        while not self._is_closing.is_set():
            try:
                self._serve()
            except (PenstockError, Collision, OSError) as error:
                _log.debug("wake-ups between nodes are unavailable: %s", error)
            if self.is_listening.is_set():
                self.is_listening.clear()
                back_off_s = _FIRST_BACK_OFF_S
            self._is_closing.wait(back_off_s)
            back_off_s = min(2 * back_off_s, _LONGEST_BACK_OFF_S)

    def _serve(self) -> None:
        """Poll and announce on one connection, until it breaks or we close."""
        db = self._open_database()
        try:
            reader = _Reader(db)
            self.is_listening.set()
            quiet = 0
            while not self._is_closing.is_set():
                poll_ms = _BUSY_POLL_MS if quiet < _IDLE_AFTER else _IDLE_POLL_MS
                if _is_readable(self._announcements.signal, poll_ms):
                    self._announcements.clear_signal()
                    reader.announce(self._announcements.take())
                hints = reader.read()  # in one packet with what is announced
                self._is_closing.wait(_PAUSE_MS / 1000)
                quiet = 0 if hints else quiet + 1
                if hints:
                    self._on_wakeup(hints)
            reader.announce(self._announcements.take())
            reader.read()
        finally:
            db.abandon()


class _Reader:
    """What this node has read of the table.  Each statement is a transaction of its own."""

    def __init__(self, db: MariadbDatabase) -> None:
        self._db = db
        self._me = _number(db.rows("session.process"))
        self._after_no = _number(db.rows("wakeups.latest"))
        self._polls = 0
        self._at = _number(db.rows("clock.read"))  # exact enough to know which rows are old

    def announce(self, hints: Hints) -> None:
        """Sent with the next read."""
        if hints:
            texts = encode(hints, max_chars=MAX_CHARS)
            self._db.insert("wakeups.announce", [(self._at, self._me, text) for text in texts])

    def read(self) -> Hints:
        self._polls += 1
        if self._polls % _FORGET_EVERY == 0:
            self._forget()
        params = {"after_no": self._after_no, "sender": self._me}
        rows = self._db.rows("wakeups.hints", params)
        if not rows:
            return Hints()
        self._after_no = rows[-1][0]
        return decode(text for _, text in rows)

    def _forget(self) -> None:
        before, self._at = self._at, _number(self._db.rows("clock.read"))
        self._db.run("wakeups.forget", {"before_at": before})


def _number(rows: list[Row]) -> int:
    [(number,)] = rows
    return int(number)


def _is_readable(file: int, at_most_ms: int) -> bool:
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(at_most_ms))
