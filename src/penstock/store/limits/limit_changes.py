"""A queue gets other limits, or becomes fair, with messages in line and leases under way.

Everything is judged anew from the messages that are there: this takes time that grows with their
number, and nobody else writes meanwhile.
"""

from __future__ import annotations

from penstock.domain.queue.queue import Queue, QueueSettings
from penstock.store.database import Overtaken
from penstock.store.limits.fair_positions import Turns
from penstock.store.limits.group_limits import Openings
from penstock.store.limits.rates import Paces
from penstock.store.verbs.transaction_state import Books


class Steering:
    def __init__(self, books: Books) -> None:
        self._books = books
        self._openings = Openings(books)
        self._paces = Paces(books)
        self._turns = Turns(books)
        self._db = books.db
        self._must_stop = False

    def prepare(self, queue_no: int, settings: QueueSettings | None) -> Queue | None:
        """The queue as it was, if these settings change who may be claimed when.

        Whoever sends or claims by the settings from before must be done: so nobody may be at it,
        and that has to be the first thing that this transaction asks for.
        """
        if settings is None:
            return None
        self.stop_if_needed()
        before = self._books.queue(queue_no)
        if not _differ(before.settings, settings):
            return None
        if self._db.is_shared and not self._books.is_alone:
            self._must_stop = True
            raise Overtaken("others may be at work by the limits from before")
        self._db.be_patient()
        return before

    def stop_if_needed(self) -> None:
        if self._must_stop:
            self._must_stop = False
            self._db.post("queues.line_up")
            self._db.post("queues.stop_sends")
            self._books.is_alone = True

    def change(self, before: Queue, after: Queue, *, now: int) -> None:
        no, old, new = after.queue_no, before.settings, after.settings
        if old.rate != new.rate:
            self._paces.forget_of_queue(no, of_queue=True)
        if old.rate_per_group != new.rate_per_group:
            self._paces.forget_of_queue(no, of_queue=False)
        if old.is_fair != new.is_fair:
            # First, because who is let through goes by it.
            if new.is_fair:
                self._turns.line_up(after)
            else:
                self._turns.leave_off(no)
        if _limits(old) != _limits(new):
            self._openings.judge_anew(no, now=now)
        self._books.wake(no, 1_000_000)

    def forget(self, queue_no: int) -> None:
        """The queue is removed."""
        for of_queue in (True, False):
            self._paces.forget_of_queue(queue_no, of_queue=of_queue)
        self._turns.forget_queue(queue_no)


def _limits(settings: QueueSettings) -> object:
    return settings.max_leased_per_group, settings.rate_per_group


def _differ(old: QueueSettings, new: QueueSettings) -> bool:
    names = ("max_leased", "rate", "max_leased_per_group", "rate_per_group", "is_fair")
    return any(getattr(old, name) != getattr(new, name) for name in names)
