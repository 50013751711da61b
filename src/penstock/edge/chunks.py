"""Work on a whole queue, chunk by chunk, so that other requests get their turn between."""

from __future__ import annotations

from penstock.services.queues import CHUNK, QueueService


async def bring_all_back(queues: QueueService, name: str) -> None:
    """What has fallen due is in line again, whether a duty came by already or not."""
    while await queues.bring_back_some(name) == CHUNK:
        pass
