"""What all connections have in common that write in their turn; see turns.py."""

from __future__ import annotations

from penstock.domain.errors import StoreUnavailable
from penstock.store.sqlite.busy_wait import Patience
from penstock.store.sqlite.write_lock import Turns


class InTurn:
    is_alive: bool  # False: a sync failed, and nothing this connection says is certain
    _turns: Turns | None  # None: it only reads, or nobody else is there
    _patience: Patience

    def take_turn(self, *, wait: bool, patience_ms: int | None = None) -> bool:
        if self._turns is None:
            return True
        self._patience.is_short = not wait
        if not self._turns.take(wait=wait, patience_ms=patience_ms):
            return False
        if self._turns.is_in_doubt:
            self.is_alive = False
        return True

    def give_turn_back(self) -> None:
        if self._turns is not None:
            self._turns.give_back()

    def _be_in_turn(self) -> None:
        """Unless we are, wait for it."""
        if self._turns is None or self._turns.is_ours:
            return
        self.take_turn(wait=True)
        if not self.is_alive:
            self.give_turn_back()
            raise StoreUnavailable("a sync has failed, and the log is not settled yet")

    def _doubt(self) -> None:
        """A sync may have failed: nobody builds on the log before it is settled."""
        if self._turns is not None and self._turns.is_ours:
            self._turns.doubt()

    def _doubt_at_once(self) -> None:
        """Out of turn, too: while we have the store open, nobody settles the log."""
        if self._turns is not None:
            self._turns.doubt()
