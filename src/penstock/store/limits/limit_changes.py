"""Changes a queue's limits or fairness while it has messages and leases.

Which messages are admitted is decided again for the whole queue.  That takes time in proportion to
the number of messages, and other writers wait meanwhile.
"""

from __future__ import annotations

from penstock.domain.queue.queue import Queue, QueueSettings
from penstock.store.database import RowsChanged
from penstock.store.limits.fair_positions import FairPositions
from penstock.store.limits.group_limits import GroupLimits
from penstock.store.limits.rates import RateBuckets
from penstock.store.verbs.transaction_state import TransactionState


class LimitChanges:
    def __init__(self, transaction: TransactionState) -> None:
        self._transaction = transaction
        self._group_limits = GroupLimits(transaction)
        self._rate_buckets = RateBuckets(transaction)
        self._positions = FairPositions(transaction)
        self._db = transaction.db
        self._must_stop = False

    def prepare(self, queue_no: int, settings: QueueSettings | None) -> Queue | None:
        """Return the queue as it was, if these settings change which messages may be claimed when.

        Sends and claims under the old settings must have finished, so this transaction has to lock
        out all others before it locks anything else.
        """
        if settings is None:
            return None
        self.stop_if_needed()
        before = self._transaction.queue(queue_no)
        if not _differ(before.settings, settings):
            return None
        if self._db.is_shared and not self._transaction.is_alone:
            self._must_stop = True
            raise RowsChanged("other transactions may still use the old limits")
        self._db.raise_time_limits()
        return before

    def stop_if_needed(self) -> None:
        if self._must_stop:
            self._must_stop = False
            self._db.post("queues.serialize_removals")
            self._db.post("queues.stop_writes")
            self._transaction.is_alone = True

    def change(self, before: Queue, after: Queue, *, now: int) -> None:
        no, old, new = after.queue_no, before.settings, after.settings
        if old.rate != new.rate:
            self._rate_buckets.forget_of_queue(no, of_queue=True)
        if old.rate_per_group != new.rate_per_group:
            self._rate_buckets.forget_of_queue(no, of_queue=False)
        if old.is_fair != new.is_fair:
            # First, because admission depends on it.
            if new.is_fair:
                self._positions.assign_all(after)
            else:
                self._positions.clear(no)
        elif old.rotates_groups and not new.rotates_groups:
            self._positions.clear(no)
        if _limits(old) != _limits(new):
            self._group_limits.reapply(no, now=now)
        self._transaction.wake(no, 1_000_000)

    def forget(self, queue_no: int) -> None:
        """The queue was removed."""
        for of_queue in (True, False):
            self._rate_buckets.forget_of_queue(queue_no, of_queue=of_queue)
        self._positions.forget_queue(queue_no)


def _limits(settings: QueueSettings) -> object:
    return settings.max_leased_per_group, settings.rate_per_group


def _differ(old: QueueSettings, new: QueueSettings) -> bool:
    names = (
        *("max_leased", "rate", "max_leased_per_group", "rate_per_group", "is_fair"),
        "rotates_groups",
    )
    return any(getattr(old, name) != getattr(new, name) for name in names)
