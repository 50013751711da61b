"""Registered workers of a fleet of processes, including those started elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec

from penstock.domain.errors import ReplicasUnavailable, StoreUnavailable
from penstock.outbound.replicas.ledger import LedgerState
from penstock.ports.fleet_registry import FleetRegistry, Member

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

    def members(self) -> list[Member]:
        """Members that are not draining."""
        registry = self._registry
        if registry is None:
            return []
        return [
            one
            for one in _ask_registry(lambda: registry.members(self._fleet))
            if not one.is_draining
        ]

    def holding(self, worker_ids: list[str]) -> dict[str, int]:
        registry = self._registry
        if registry is None or not worker_ids:
            return {}
        return _ask_registry(lambda: registry.holding(worker_ids))

    def drain(self, other: OtherReplica) -> None:
        for worker_id in other.ids:
            _log.info("fleet %s: draining worker %s", self._fleet, worker_id)
            if self._registry is not None:
                _ask_registry(partial(self._registry.drain, worker_id))


def others(state: LedgerState, members: list[Member]) -> list[OtherReplica]:
    """Replicas that are not in the ledger."""
    known = {one.replica for one in state.started} | set(state.gone)
    found: dict[str, list[Member]] = {}
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
