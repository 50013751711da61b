"""The registry of workers, as whoever runs a fleet sees it.

A worker belongs to a fleet by its label `fleet`, wherever it runs and whoever has started it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

FLEET = "fleet"  # labels
REPLICA = "replica"


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A worker of the fleet that is alive."""

    id: str
    replica: str | None  # its label: which of the processes that were started it is
    host: str | None
    is_draining: bool
    registered_at: int


class FleetRoll(Protocol):
    def members(self, fleet: str) -> list[Member]:
        """Raises StoreUnavailable."""
        ...

    def holding(self, worker_ids: Sequence[str]) -> dict[str, int]:
        """How many leases each of them holds, as far as that matters for who is idle."""
        ...

    def drain(self, worker_id: str) -> None:
        """It hears of it with its next beat.  One that has gone meanwhile is no error."""
        ...
