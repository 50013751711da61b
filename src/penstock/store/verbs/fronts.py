"""The front of a queue, leased as far as one answer holds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.domain.message.answer_size import count_fitting
from penstock.store.database import Answer, Database, Row
from penstock.store.verbs.transaction_state import json_list

_FRONT = ("queue_no", "now", "limit")
_LEASE = ("now", "due_at", "claimed_by")


def ask_front(db: Database, lease: dict[str, Any]) -> Answer:
    """Lease up to `limit` messages and `max_bytes`; one in any case."""
    # Where nothing travels, to measure first is cheaper than to measure with the claim.
    if db.is_shared or (lease["limit"] > 1 and _front_size(db, lease) > lease["max_bytes"]):
        return db.ask("messages.claim", lease)
    return db.ask("fronts.claim_small", {n: lease[n] for n in (*_FRONT, *_LEASE)})


def lease_fitting(db: Database, front: Sequence[Row], lease: dict[str, Any]) -> list[Row]:
    """`front`: numbers and sizes of messages that nobody else can claim meanwhile."""
    count = count_fitting((size for _, size in front), lease["max_bytes"])
    nos = [message_no for message_no, _ in front[:count]]
    if not nos:
        return []
    params = {name: lease[name] for name in _LEASE} | {"message_nos": json_list(nos)}
    return db.rows("fronts.lease", params)


def _front_size(db: Database, lease: dict[str, Any]) -> int:
    [(size,)] = db.rows("fronts.size", {name: lease[name] for name in _FRONT})
    return int(size)
