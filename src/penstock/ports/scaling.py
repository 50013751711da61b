"""Where the autoscaler reads how much work and how many workers there are.

Each of these may be slow or wrong.  They have their own timeouts, and the autoscaler calls them for
each fleet separately, so that no fleet waits for the slowest.
"""

from __future__ import annotations

from typing import Protocol

from penstock.domain.scaling.pressure import Alert, Pressure
from penstock.domain.scaling.recommendation import Replicas, Sample


class LoadSource(Protocol):
    """A place with queues: our own store, or another broker."""

    def read(self, queue: str, staging_indicator: str | None, *, now: int) -> Sample:
        """Raises QueueUnknown and SourceUnavailable.

        With a `staging_indicator`, also reads queues named `<queue><indicator><something>`.
        """
        ...

    def pressure(self, *, now: int) -> Pressure | None:
        """How full the broker is; None if unknown.  Raises SourceUnavailable."""
        ...

    def close(self) -> None: ...


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
