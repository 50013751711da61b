"""Workers that another system starts and stops, such as KEDA, which queries the wanted number.

This manager starts nothing.  It counts workers in the registry by their label `fleet`; if workers
do not register, it assumes that the wanted number runs.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.domain.errors import ReplicasUnavailable, StoreUnavailable
from penstock.domain.scaling.fleet import External
from penstock.domain.scaling.recommendation import Replicas
from penstock.ports.fleet_registry import FleetRegistry


class ExternalReplicas:
    def __init__(
        self, fleet: str, spec: External, *, registry: FleetRegistry, before: Callable[[str], int]
    ) -> None:
        """`before`: returns how many were wanted before this process started."""
        self._fleet = fleet
        self._spec = spec
        self._registry = registry
        self._before = before
        self._wanted: int | None = None

    def count(self, *, now: int) -> Replicas:
        if self._wanted is None:
            self._wanted = self._before(self._fleet)
        if not self._spec.on_roll:
            return Replicas(running=self._wanted, requested=self._wanted)
        try:
            members = self._registry.members(self._fleet)
        except StoreUnavailable as error:
            raise ReplicasUnavailable("the registry of workers cannot be read") from error
        running = sum(not member.is_draining for member in members)
        return Replicas(running=running, requested=self._wanted)

    def scale_to(self, wanted: int, *, now: int) -> None:
        self._wanted = wanted

    def maintain(self, *, now: int) -> None:
        """Does nothing: the other system does."""

    def close(self) -> None:
        """Does nothing: the workers keep running."""
