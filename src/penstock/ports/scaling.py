"""Where the autoscaler reads how much work and how many workers there are.

Each of these may be slow or wrong.  They have their own timeouts, and the autoscaler calls them for
each fleet separately, so that no fleet waits for the slowest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from penstock.domain.scaling.pressure import Alert, Pressure
from penstock.domain.scaling.recommendation import Replicas, Sample

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
    """The workers of a fleet, as replica managers see them.

    A worker belongs to a fleet by its label `fleet`, wherever it runs and however it was started.
    """

    def members(self, fleet: str) -> list[FleetMember]:
        """Raises StoreUnavailable."""
        ...

    def lease_counts(self, worker_ids: Sequence[str]) -> dict[str, int]:
        """How many leases each worker holds; counting may stop once a worker is clearly busy."""
        ...

    def drain(self, worker_id: str) -> None:
        """The worker is notified by its next beat.  A worker that is gone is not an error."""
        ...


class LoadSource(Protocol):
    """A place with queues: our own store, or another broker."""

    def read(self, queue: str, staging_indicator: str | None, *, now: int) -> Sample:
        """Raises QueueUnknown and SourceUnavailable.

        With a `staging_indicator`, also reads queues named `<queue><indicator><something>`.
        """
        ...

    def pressure(self, *, now: int) -> Pressure | None:
        """How full the broker is; None if unknown or without limits.  Raises SourceUnavailable."""
        return None

    def close(self) -> None:
        """Most have nothing to close: they keep no connections between queries."""
        return


class ReplicaManager(Protocol):
    """Starts and stops the workers of one fleet."""

    def count(self, *, now: int) -> Replicas:
        """Count the replicas; changes nothing.  Raises ReplicasUnavailable.

        `requested` is the number that the manager is going to run; if the platform does not report
        it, the number of the last `scale_to`.
        """
        ...

    def scale_to(self, wanted: int, *, now: int) -> None:
        """Request this many in total.  Raises ReplicasUnavailable.

        It does not wait for workers to start or to end.
        """
        ...

    def maintain(self, *, now: int) -> None:
        """Called at each run except a dry one: restart crashed workers, end drained ones.

        Raises ReplicasUnavailable.
        """
        ...

    def close(self) -> None:
        """The autoscaler exits; a setting of the manager decides whether its workers end, too."""
        ...


class Alerts(Protocol):
    def send(self, alert: Alert) -> None:
        """Never raises, never blocks; failures are logged."""
        ...
