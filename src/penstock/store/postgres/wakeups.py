"""Wake-ups between nodes: LISTEN and NOTIFY on a connection of its own.

Wake-ups are sent from here after the commit, not inside the transaction, because commits with a
NOTIFY are serialised by one lock.  Only a caller's own transaction sends its own.  If wake-ups fail
(a proxy that cannot listen, a lost connection), waiting claims poll from time to time.

A payload is the sender's number and a text of hints (store/announcements.py).
"""

from __future__ import annotations

import logging
import select
import threading
from collections.abc import Callable, Iterator

from penstock.domain.errors import PenstockError
from penstock.store.announcements import PAUSE_MS, Announcements, Hints, decode, encode
from penstock.store.database import Collision
from penstock.store.postgres.connection import PostgresDatabase
from penstock.supervision.health import NodeHealth
from penstock.supervision.threads import SupervisedThread

NO_NODE = "0"  # the sender's number of a caller's transaction
_PATIENCE_S = 5.0
_FIRST_BACK_OFF_S = 0.1
_LONGEST_BACK_OFF_S = 10.0

_log = logging.getLogger(__name__)


class PostgresWakeups:
    def __init__(
        self,
        open_database: Callable[[], PostgresDatabase],
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
        """Listen and announce on one connection, until it breaks or we close."""
        db = self._open_database()
        try:
            db.begin(durable=False)
            me = str(db.rows("session.process")[0][0])
            db.post("wakeups.listen")
            db.commit()
            self.is_listening.set()
            while not self._is_closing.is_set():
                signal = self._announcements.signal
                is_rung = signal in _ready([db.fileno(), signal])
                self._receive(db, me)
                if is_rung:
                    self._announcements.clear_signal()
                    self._send_announcements(db, me)
                    _ready([db.fileno()], PAUSE_MS)
            self._send_announcements(db, me)
        finally:
            db.abandon()

    def _send_announcements(self, db: PostgresDatabase, me: str) -> None:
        hints = self._announcements.take()
        if hints:
            # Without BEGIN, COMMIT and settings: they would cost more than the notification.
            db.run_alone("wakeups.notify_alone", [{"payload": p} for p in payloads(me, hints)])

    def _receive(self, db: PostgresDatabase, me: str) -> None:
        payloads = (payload.partition(" ") for payload in db.notifications())
        hints = decode(text for sender, _, text in payloads if sender != me)
        if hints:
            self._on_wakeup(hints)


def payloads(sender: str, hints: Hints) -> Iterator[str]:
    return (f"{sender} {text}" for text in encode(hints))


def _ready(files: list[int], at_most_ms: int | None = None) -> list[int]:
    """Files with something to read; not by select(), which is limited to the first 1,024."""
    poll = select.poll()
    for file in files:
        poll.register(file, select.POLLIN)
    return [file for file, _ in poll.poll(at_most_ms)]
