"""Workers that were started elsewhere: counted in the registry, and drained through it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec

from penstock.domain.errors import ReplicasUnavailable, StoreUnavailable
from penstock.domain.scaling.fleet import External
from penstock.domain.scaling.recommendation import Replicas
from penstock.outbound.replicas.ledger import LedgerState
from penstock.ports.scaling import FleetMember, FleetRegistry

T = TypeVar("T")

_log = logging.getLogger("penstock.fleets")


class OtherReplica(msgspec.Struct, frozen=True):
    """A replica that was started elsewhere: its registered workers."""

    ids: tuple[str, ...]
    since: int


class RegisteredReplicas:
    """Every method may raise ReplicasUnavailable; without a registry there are no members."""

    def __init__(self, fleet: str, registry: FleetRegistry | None) -> None:
        self._fleet = fleet
        self._registry = registry

    @property
    def is_used(self) -> bool:
        return self._registry is not None

    def members(self) -> list[FleetMember]:
        """Members that are not draining."""
        registry = self._registry
        if registry is None:
            return []
        return [
            one
            for one in _ask_registry(lambda: registry.members(self._fleet))
            if not one.is_draining
        ]

    def lease_counts(self, worker_ids: list[str]) -> dict[str, int]:
        registry = self._registry
        if registry is None or not worker_ids:
            return {}
        return _ask_registry(lambda: registry.lease_counts(worker_ids))

    def drain(self, other: OtherReplica) -> None:
        for worker_id in other.ids:
            _log.info("fleet %s: draining worker %s", self._fleet, worker_id)
            if self._registry is not None:
                _ask_registry(partial(self._registry.drain, worker_id))


def others(state: LedgerState, members: list[FleetMember]) -> list[OtherReplica]:
    """Replicas that are not in the ledger."""
    known = {one.replica for one in state.started} | set(state.gone)
    found: dict[str, list[FleetMember]] = {}
    for member in members:
        if member.replica not in known:
            found.setdefault(member.replica or member.id, []).append(member)
    return [
        OtherReplica(
            tuple(member.id for member in each), min(member.registered_at for member in each)
        )
        for each in found.values()
    ]


def _ask_registry(ask: Callable[[], T]) -> T:
    try:
        return ask()
    except StoreUnavailable as error:
        raise ReplicasUnavailable("the registry of workers cannot be read") from error


class ExternalReplicas:
    """Workers that another system starts and stops, such as KEDA, which queries the wanted number.

    This manager starts nothing.  It counts workers in the registry by their label `fleet`; if
    workers do not register, it assumes that the wanted number runs.
    """

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
        if not self._spec.registered:
            return Replicas(running=self._wanted, requested=self._wanted)
        members = _ask_registry(lambda: self._registry.members(self._fleet))
        running = sum(not member.is_draining for member in members)
        return Replicas(running=running, requested=self._wanted)

    def scale_to(self, wanted: int, *, now: int) -> None:
        self._wanted = wanted

    def maintain(self, *, now: int) -> None:
        """Does nothing: the other system does."""

    def close(self) -> None:
        """Does nothing: the workers keep running."""
