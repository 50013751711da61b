"""What the autoscaler asks of others: how much work there is, and how many workers.

All of these may be slow or wrong.  They keep time limits of their own, and the autoscaler asks each
fleet's aside from all others, so that nobody waits for the slowest.
"""

from __future__ import annotations

from typing import Protocol

from penstock.domain.scaling.pressure import Alert, Pressure
from penstock.domain.scaling.recommendation import Replicas, Sample


class LoadSource(Protocol):
    """A place where queues are: our own store, or a broker of somebody else."""

    def read(self, queue: str, staging_indicator: str | None, *, now: int) -> Sample:
        """Raises QueueUnknown and SourceUnavailable.

        With a `staging_indicator` also the queues whose names are `<queue><indicator><something>`.
        """
        ...

    def pressure(self, *, now: int) -> Pressure | None:
        """How full the broker is; None if it cannot be known.  Raises SourceUnavailable."""
        ...

    def close(self) -> None: ...


class ReplicaManager(Protocol):
    """Whoever starts and stops the workers of one fleet."""

    def count(self, *, now: int) -> Replicas:
        """Only looks.  Raises ReplicasUnavailable.

        `requested` is what the manager is still going to run; where the platform does not report
        it, the number of the last `scale_to`.
        """
        ...

    def scale_to(self, wanted: int, *, now: int) -> None:
        """From now on so many in total are requested.  Raises ReplicasUnavailable.

        It does not wait for them to start, nor for those to end that are too many.
        """
        ...

    def tend(self, *, now: int) -> None:
        """Asked at each run, never in a dry one: start anew what has crashed, end what is drained.

        Raises ReplicasUnavailable.
        """
        ...

    def close(self) -> None:
        """The autoscaler ends here; whether its workers do too is a setting of the manager."""
        ...


class Alerts(Protocol):
    def send(self, alert: Alert) -> None:
        """Never raises, never blocks; what cannot be told is told to the log."""
        ...
