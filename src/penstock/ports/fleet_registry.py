"""The workers of a fleet, as replica managers see them.

A worker belongs to a fleet by its label `fleet`, wherever it runs and however it was started.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

FLEET = "fleet"  # labels
REPLICA = "replica"


class FleetMember(msgspec.Struct, frozen=True, kw_only=True):
    """A live worker of the fleet."""

    id: str
    replica: str | None  # its label: the replica that it is part of
    host: str | None
    is_draining: bool
    registered_at: int


class FleetRegistry(Protocol):
    def members(self, fleet: str) -> list[FleetMember]:
        """Raises StoreUnavailable."""
        ...

    def holding(self, worker_ids: Sequence[str]) -> dict[str, int]:
        """How many leases each worker holds; counting may stop once a worker is clearly busy."""
        ...

    def drain(self, worker_id: str) -> None:
        """The worker is notified by its next beat.  A worker that is gone is not an error."""
        ...
