"""Dedup keys that are taken until something happens to their message, and not for a while.

Freed in the transaction in which it happens.  Whoever frees one has locked its message before, and
nobody else touches the key meanwhile: so nobody waits here.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.domain.message.lifecycle import Message
from penstock.domain.queue.queue import DedupScope, DedupUntil
from penstock.store.verbs.transaction_state import Books, json_list

NO_END = 2**62

Held = tuple[int, str | None, str, str]  # queue, group, key and the id of the message


def scoped(scope: DedupScope, group: str | None, key: str) -> str:
    """The key as it stands in the table."""
    return json_list([group, key]) if scope is DedupScope.GROUP else key


def held_by(message: Message) -> Held:
    return message.queue_no, message.group, message.dedup_key or "", message.id


def freed_by_claim(claimed: Iterable[Message]) -> list[Held]:
    """Those of messages that were claimed just now, for the first time."""
    return [
        held_by(m)
        for m in claimed
        if m.dedup_until is not None and m.lease_no == 1 and m.dedup_until is DedupUntil.CLAIMED
    ]


def give_back(books: Books, held: Iterable[Held]) -> None:
    # The queue may have been given another scope since: the key stands there in one of its forms.
    keys = {
        (queue_no, scoped(scope, group, key), message_id)
        for queue_no, group, key, message_id in held
        for scope in DedupScope
    }
    books.db.post("dedup.give_back", {"keys": json_list(sorted(keys)), "no_end": NO_END})
