"""Wake-ups between nodes: LISTEN and NOTIFY on a connection beside the others.

Told after the commit and from here, not inside of the transaction: a commit that notifies takes a
lock that all such commits share.  Only where the transaction is a caller's own there is no other
way.  Whatever goes wrong (a proxy that cannot listen, a lost connection), waiting claims look by
themselves once in a while.

A payload is the teller's number and pairs `queue_no:count`.
"""

from __future__ import annotations

import logging
import os
import select
import threading
from collections.abc import Callable, Iterator, Mapping

from penstock.domain.errors import PenstockError
from penstock.store.database import Collision
from penstock.store.postgres.connection import PostgresDatabase
from penstock.supervision.health import Health
from penstock.supervision.threads import SupervisedThread

PAUSE_MS = 5  # at most one telling in that time, however many commits there are
MOST_QUEUES = 250  # in one payload, which takes up to 8,000 bytes
NOBODY = "0"  # a teller that is none of those who listen
_PATIENCE_S = 5.0
_FIRST_BACK_OFF_S = 0.1
_LONGEST_BACK_OFF_S = 10.0

_log = logging.getLogger(__name__)


class PostgresWakeups:
    def __init__(
        self,
        open_database: Callable[[], PostgresDatabase],
        *,
        heard: Callable[[Mapping[int, int]], None],
        health: Health,
    ) -> None:
        self._open_database = open_database
        self._heard = heard
        self._lock = threading.Lock()
        self._untold: dict[int, int] = {}
        self._bell, self._rope = os.pipe()
        self._is_closing = threading.Event()
        self.is_listening = threading.Event()
        self._thread = SupervisedThread("penstock-wakeups", self._run, health=health)
        self._thread.start()

    def announce(self, woken: Mapping[int, int]) -> None:
        """Other nodes shall hear of it, soon and together with what comes until then."""
        if self._is_closing.is_set():
            return
        with self._lock:
            is_first = not self._untold
            for queue_no, count in woken.items():
                self._untold[queue_no] = self._untold.get(queue_no, 0) + count
        if is_first:
            os.write(self._rope, b".")

    def close(self) -> None:
        """Tell what is untold, and go."""
        if self._is_closing.is_set():
            return
        self._is_closing.set()
        os.write(self._rope, b".")
        if self._thread.join(_PATIENCE_S):
            os.close(self._bell)
            os.close(self._rope)

    def _run(self) -> None:
        back_off_s = _FIRST_BACK_OFF_S
        while not self._is_closing.is_set():
            try:
                self._serve()
            except (PenstockError, Collision, OSError) as error:
                _log.debug("no wake-ups between nodes for now: %s", error)
            if self.is_listening.is_set():
                self.is_listening.clear()
                back_off_s = _FIRST_BACK_OFF_S
            self._is_closing.wait(back_off_s)
            back_off_s = min(2 * back_off_s, _LONGEST_BACK_OFF_S)

    def _serve(self) -> None:
        """Listen and tell on one connection, until it breaks or we close."""
        db = self._open_database()
        try:
            db.begin(durable=False)
            me = str(db.rows("session.process")[0][0])
            db.post("wakeups.listen")
            db.commit()
            self.is_listening.set()
            while not self._is_closing.is_set():
                is_rung = self._bell in _ready([db.fileno(), self._bell])
                self._hear(db, me)
                if is_rung:
                    os.read(self._bell, 4096)
                    self._tell(db, me)
                    _ready([db.fileno()], PAUSE_MS)
            self._tell(db, me)
        finally:
            db.abandon()

    def _tell(self, db: PostgresDatabase, me: str) -> None:
        with self._lock:
            untold, self._untold = list(self._untold.items()), {}
        if untold:
            db.begin(durable=False)
            for payload in payloads(me, untold):
                db.post("wakeups.tell", {"payload": payload})
            db.commit()

    def _hear(self, db: PostgresDatabase, me: str) -> None:
        woken: dict[int, int] = {}
        for payload in db.notifications():
            teller, *pairs = payload.split()
            if teller != me:
                for pair in pairs:
                    queue_no, _, count = pair.partition(":")
                    woken[int(queue_no)] = woken.get(int(queue_no), 0) + int(count)
        if woken:
            self._heard(woken)


def payloads(teller: str, woken: list[tuple[int, int]]) -> Iterator[str]:
    for start in range(0, len(woken), MOST_QUEUES):
        some = woken[start : start + MOST_QUEUES]
        yield f"{teller} " + " ".join(f"{queue_no}:{count}" for queue_no, count in some)


def _ready(files: list[int], at_most_ms: int | None = None) -> list[int]:
    """Those with something to read; not by select(), which knows only the first 1,024 files."""
    poll = select.poll()
    for file in files:
        poll.register(file, select.POLLIN)
    return [file for file, _ in poll.poll(at_most_ms)]
