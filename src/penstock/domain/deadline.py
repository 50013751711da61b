"""How long one attempt may take, where its sender has said so.

A lease never reaches beyond it.  So one that runs out there does not come back like that of a
holder who has gone away: there was no more time to be had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.domain.message import Message


def deadline(message: Message) -> int | None:
    """When the attempt under way has taken too long."""
    if message.timeout_ms is None:
        return None
    started_at = message.leased_at if message.started_at is None else message.started_at
    return None if started_at is None else started_at + message.timeout_ms


def lease_end(message: Message, wanted: int) -> int:
    """The end of a lease that is to last until `wanted`."""
    end = deadline(message)
    return wanted if end is None else min(wanted, end)


def is_overdue(leased: Message) -> bool:
    """Its lease ends where its time does."""
    end = deadline(leased)
    return end is not None and leased.due_at >= end
