"""Work on a whole queue in chunks, so that other requests can run in between."""

from __future__ import annotations

from penstock.services.queues import CHUNK, QueueService


async def make_due_claimable(queues: QueueService, name: str) -> None:
    """Make all due messages claimable now, without waiting for the reaper."""
    while await queues.bring_back_some(name) == CHUNK:
        pass
