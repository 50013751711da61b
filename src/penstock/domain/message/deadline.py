"""The deadline of an attempt, if the sender has limited how long one may take.

A lease expires when its holder is silent for too long, a deadline when the attempt takes too long;
neither shortens the other.  Only a holder that still extends its lease can time out: one that is
silent counts as gone, and its message is redelivered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.domain.message.lifecycle import Message


def deadline(message: Message) -> int | None:
    """When the running attempt has taken too long."""
    if message.timeout_ms is None:
        return None
    started_at = message.leased_at if message.started_at is None else message.started_at
    return None if started_at is None else started_at + message.timeout_ms


def is_overdue(message: Message, *, now: int) -> bool:
    end = deadline(message)
    return end is not None and end <= now
