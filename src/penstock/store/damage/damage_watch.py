"""Damage that a running store has encountered: logged once per page, and available for reports."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from penstock.domain.errors import PenstockError, StoreDamaged
from penstock.domain.store.damage import Damage, DamagedPage
from penstock.supervision.threads import start_logged

_log = logging.getLogger("penstock.store")

PAGE_DAMAGED = (
    "a page of the store that this request needs is damaged. Retrying does not help: an operator "
    "must run `penstock doctor`"
)


class DamageWatch:
    """Thread-safe.  The search for damaged pages may take seconds, so it has its own thread."""

    def __init__(self, find: Callable[[], Sequence[DamagedPage]]) -> None:
        self._find = find
        self._lock = threading.Lock()
        self._times = 0
        self._look_at = 1
        self._is_searching = False
        self._found: Damage | None = None

    def damage(self) -> Damage | None:
        return self._found

    def report(self, error: object) -> StoreDamaged:
        """Record damage; returns the error for the caller whose request encountered it."""
        with self._lock:
            self._times += 1
            is_first = self._found is None
            self._found = self._found or Damage()
            # More pages may get damaged, so search again; the distance between searches doubles.
            is_due = self._times >= self._look_at and not self._is_searching
            if is_due:
                self._look_at *= 2
                self._is_searching = True
        if is_first:
            _log.error("the store is damaged: %s; searching for the pages", error)
        if is_due:
            start_logged("penstock-damage", self._search)
        return StoreDamaged(PAGE_DAMAGED)

    def _search(self) -> None:
        try:
            pages = tuple(self._find())
        except (PenstockError, OSError, ValueError) as error:
            _log.error("the damaged pages cannot be listed: %s", error)
            pages = ()
        finally:
            self._is_searching = False
        known = self._found.pages if self._found is not None else ()
        for page in pages:
            if page not in known:
                _log.error(
                    "the store is damaged: %s. Other queues are served. %s",
                    page.text,
                    "Stop the server and run `penstock doctor --salvage NEW_STORE`, or restore a "
                    "backup",
                )
        self._found = Damage(pages or known)
