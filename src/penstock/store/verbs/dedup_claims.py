"""Dedup keys held until their message is claimed or has ended, not for a time window.

The transaction that claims or ends the message releases its key.  It has locked the message, and no
other transaction touches the key, so none waits here.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.domain.message.lifecycle import Message
from penstock.domain.queue.queue import DedupScope, DedupUntil
from penstock.store.verbs.transaction_state import TransactionState, json_list

NO_END = 2**62

DedupClaim = tuple[int, str | None, str, str]  # queue, group, key and the id of the message


def stored_key(scope: DedupScope, group: str | None, key: str) -> str:
    """The key as it is stored: with its group, if groups have separate keys."""
    return json_list([group, key]) if scope is DedupScope.GROUP else key


def dedup_claim_of(message: Message) -> DedupClaim:
    return message.queue_no, message.group, message.dedup_key or "", message.id


def keys_freed_by_claim(claimed: Iterable[Message]) -> list[DedupClaim]:
    """The keys that end with the first claim of their messages."""
    return [
        dedup_claim_of(m)
        for m in claimed
        if m.dedup_until is not None and m.lease_no == 1 and m.dedup_until is DedupUntil.CLAIMED
    ]


def release_keys(transaction: TransactionState, held: Iterable[DedupClaim]) -> None:
    # The queue's scope may have changed since: the key is stored in one of its forms.
    keys = {
        (queue_no, stored_key(scope, group, key), message_id)
        for queue_no, group, key, message_id in held
        for scope in DedupScope
    }
    transaction.db.post("dedup.release", {"keys": json_list(sorted(keys)), "no_end": NO_END})
