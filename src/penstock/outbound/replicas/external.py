"""Workers that somebody else starts and stops: KEDA, or whoever asks how many are wanted.

Nothing is done here.  Who is there is known from the registry of workers, by the label `fleet`; of
those that are not on it what is wanted is taken for granted.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.domain.errors import ReplicasUnavailable, StoreUnavailable
from penstock.domain.scaling.fleet import External
from penstock.domain.scaling.recommendation import Replicas
from penstock.ports.fleet_registry import FleetRegistry


class ExternalReplicas:
    def __init__(
        self, fleet: str, spec: External, *, roll: FleetRegistry, before: Callable[[str], int]
    ) -> None:
        """`before`: how many were wanted last, before this process began."""
        self._fleet = fleet
        self._spec = spec
        self._roll = roll
        self._before = before
        self._wanted: int | None = None

    def count(self, *, now: int) -> Replicas:
        if self._wanted is None:
            self._wanted = self._before(self._fleet)
        if not self._spec.on_roll:
            return Replicas(running=self._wanted, requested=self._wanted)
        try:
            members = self._roll.members(self._fleet)
        except StoreUnavailable as error:
            raise ReplicasUnavailable("the registry of workers cannot be read") from error
        running = sum(not member.is_draining for member in members)
        return Replicas(running=running, requested=self._wanted)

    def scale_to(self, wanted: int, *, now: int) -> None:
        self._wanted = wanted

    def tend(self, *, now: int) -> None:
        """Somebody else does."""

    def close(self) -> None:
        """They stay."""
