"""Work on a whole queue, chunk by chunk, so that other requests get their turn between."""

from __future__ import annotations

import asyncio

from penstock.services.queues import CHUNK, Queues


async def purge_all(queues: Queues, name: str) -> int:
    """How many were cancelled."""
    total = 0
    while not (purged := await queues.purge_some(name)).is_done:
        total += purged.cancelled
        await asyncio.sleep(0)
    return total


async def bring_all_back(queues: Queues, name: str) -> None:
    """What has fallen due is in line again, whether a duty came by already or not."""
    while await queues.bring_back_some(name) == CHUNK:
        pass
