"""Where a caller's own transaction on a shared SQLite file waits until it may write.

The connection is the caller's and waits for SQLite as the caller wants it to.  But who looks again
and again, while others stand in line, may never find the moment between two of them.  So the caller
takes a turn as well, and gives it back as soon as SQLite lets it write: from then on the others
wait for SQLite.  Who writes already needs none, and must not wait for one: the others wait for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.domain.errors import StoreUnavailable
from penstock.store.database import Occupied
from penstock.store.sqlite.shared_connection import MOVE_MS, LogMoves, move_log
from penstock.store.sqlite.write_lock import Turns
from penstock.supervision.health import Health
from penstock.supervision.threads import start_logged

_log = logging.getLogger("penstock.store")


class CallersDoor:
    """One for all callers of a process: they go in one by one."""

    def __init__(self, path: Path, moves: LogMoves, *, patience_ms: int, health: Health) -> None:
        self._path = path
        self._health = health
        self._moves = moves
        self._patience_ms = patience_ms
        self._lock = threading.Lock()
        self._turns: Turns | None = None  # made when it is first needed
        self._is_closed = False

    @contextmanager
    def turn(self, *, wait_ms: int) -> Iterator[None]:
        """Raises Occupied if it takes longer than that."""
        if not self._lock.acquire(timeout=wait_ms / 1000):
            raise Occupied(f"others have been waiting to write for {wait_ms} ms")
        try:
            turns = self._place()
            if not turns.take(wait=wait_ms > 0, patience_ms=wait_ms):
                raise Occupied("another process writes to the store")
            try:
                if turns.is_in_doubt:
                    move_log(self._path, again=True, patience_ms=self._patience_ms)
                    turns.trust()
                yield
            finally:
                turns.give_back()
                if self._is_closed:
                    turns.close()
        finally:
            self._lock.release()

    def used(self) -> None:
        """Callers do not move the log (sqlite_caller.py); now and then somebody has to."""
        if self._moves.is_due():
            # Not here: it waits until the caller, who is about to commit, lets others write.
            start_logged("penstock-mover", self._move_log)

    def close(self) -> None:
        self._is_closed = True
        if self._lock.acquire(blocking=False):  # or whoever is inside closes it
            try:
                if self._turns is not None:
                    self._turns.close()
            finally:
                self._lock.release()

    def _place(self) -> Turns:
        if self._turns is None:
            self._turns = Turns(self._path, patience_ms=self._patience_ms, health=self._health)
        return self._turns

    def _move_log(self) -> None:
        try:
            with self.turn(wait_ms=self._patience_ms):
                try:
                    move_log(self._path, patience_ms=MOVE_MS)
                except Occupied:
                    raise
                except StoreUnavailable:
                    self._place().doubt()
                    raise
        except StoreUnavailable as error:
            self._moves.put_off()
            _log.warning("the log could not be moved into the database: %s", error)
