"""When dedup keys that are taken until an event, not for a time window, become free."""

from __future__ import annotations

from penstock.domain.message.lifecycle import LIVE, Message
from penstock.domain.queue.queue import DedupUntil


def frees_key(before: Message, after: Message) -> bool:
    """Whether this change frees the key; ending or leaving the queue unclaimed does, too."""
    if before.dedup_until is None:
        return False
    if before.dedup_until is DedupUntil.CLAIMED:
        if before.lease_no > 0:
            return False  # its first claim has freed it
        if after.lease_no > 0:
            return True
    is_over = before.state in LIVE and after.state not in LIVE
    return is_over or after.queue_no != before.queue_no
