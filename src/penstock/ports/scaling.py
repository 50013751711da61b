"""What the autoscaler asks: how much work there is, and how many workers.

Each of these may be slow or wrong.  They keep time limits of their own, and the autoscaler asks for
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

        With a `staging_indicator` also the queues named `<queue><indicator><something>`.
        """
        ...

    def pressure(self, *, now: int) -> Pressure | None:
        """How full the broker is; None if unknown.  Raises SourceUnavailable."""
        ...

    def close(self) -> None: ...


class ReplicaManager(Protocol):
    """Starts and stops the workers of one fleet."""

    def count(self, *, now: int) -> Replicas:
        """Only reads.  Raises ReplicasUnavailable.

        `requested` is the number the manager is going to run; where the platform does not report
        it, the number of the last `scale_to`.
        """
        ...

    def scale_to(self, wanted: int, *, now: int) -> None:
        """Request this many in total.  Raises ReplicasUnavailable.

        It does not wait for workers to start or to end.
        """
        ...

    def tend(self, *, now: int) -> None:
        """Called at each run, never in a dry one: restart crashed workers, end drained ones.

        Raises ReplicasUnavailable.
        """
        ...

    def close(self) -> None:
        """The autoscaler exits; whether its workers end too is a setting of the manager."""
        ...


class Alerts(Protocol):
    def send(self, alert: Alert) -> None:
        """Never raises, never blocks; failures are logged."""
        ...
