"""How long one attempt may take, where its sender has said so.

A lease says how soon its holder must be heard of, this says when it is enough; neither cuts the
other short.  Only a holder that is there can have taken too long: one that is silent is gone, and
what it held comes back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.domain.message.lifecycle import Message


def deadline(message: Message) -> int | None:
    """When the attempt under way has taken too long."""
    if message.timeout_ms is None:
        return None
    started_at = message.leased_at if message.started_at is None else message.started_at
    return None if started_at is None else started_at + message.timeout_ms


def is_overdue(message: Message, *, now: int) -> bool:
    end = deadline(message)
    return end is not None and end <= now
