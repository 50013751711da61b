"""Work on a whole queue, chunk by chunk, so that other requests get their turn between."""

from __future__ import annotations

from penstock.services.circuits.held_queues import HeldQueues
from penstock.services.queues import CHUNK, Queues


async def unhold_all(held_queues: HeldQueues, circuit_hash: str | None = None) -> int:
    """How many queues were unheld: those of a circuit, or all."""
    total, after = 0, 0
    while True:
        unheld = await held_queues.unhold_some(circuit_hash, after=after)
        total += unheld.count
        if unheld.after is None:
            return total
        after = unheld.after


async def bring_all_back(queues: Queues, name: str) -> None:
    """What has fallen due is in line again, whether a duty came by already or not."""
    while await queues.bring_back_some(name) == CHUNK:
        pass
