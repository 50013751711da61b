"""The registry of workers as the manager of a fleet sees it.

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
    replica: str | None  # its label: which of the started processes it is
    host: str | None
    is_draining: bool
    registered_at: int


class FleetRegistry(Protocol):
    def members(self, fleet: str) -> list[FleetMember]:
        """Raises StoreUnavailable."""
        ...

    def holding(self, worker_ids: Sequence[str]) -> dict[str, int]:
        """How many leases each of them holds, as far as needed to find idle ones."""
        ...

    def drain(self, worker_id: str) -> None:
        """It learns of it with its next beat.  A worker that has gone meanwhile is ignored."""
        ...
