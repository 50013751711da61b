"""Workers of a fleet of processes as the registry knows them, whoever has started them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec

from penstock.domain.errors import ReplicasUnavailable, StoreUnavailable
from penstock.outbound.replicas.ledger import Book
from penstock.ports.fleet_registry import FleetMember, FleetRegistry

T = TypeVar("T")

_log = logging.getLogger("penstock.fleets")


class Other(msgspec.Struct, frozen=True):
    """A replica that is not ours to signal: the workers of it that are on the roll."""

    ids: tuple[str, ...]
    since: int


class Registered:
    """All of these raise ReplicasUnavailable; without a roll nobody is registered."""

    def __init__(self, fleet: str, roll: FleetRegistry | None) -> None:
        self._fleet = fleet
        self._roll = roll

    @property
    def is_used(self) -> bool:
        return self._roll is not None

    def members(self) -> list[FleetMember]:
        """Those that stay; none of those that drain."""
        roll = self._roll
        if roll is None:
            return []
        return [one for one in _on_roll(lambda: roll.members(self._fleet)) if not one.is_draining]

    def holding(self, worker_ids: list[str]) -> dict[str, int]:
        roll = self._roll
        if roll is None or not worker_ids:
            return {}
        return _on_roll(lambda: roll.holding(worker_ids))

    def drain(self, other: Other) -> None:
        for worker_id in other.ids:
            _log.info("fleet %s: worker %s is drained", self._fleet, worker_id)
            if self._roll is not None:
                _on_roll(partial(self._roll.drain, worker_id))


def others(book: Book, members: list[FleetMember]) -> list[Other]:
    """Replicas that the ledger does not know."""
    known = {one.replica for one in book.started} | set(book.gone)
    found: dict[str, list[FleetMember]] = {}
    for member in members:
        if member.replica not in known:
            found.setdefault(member.replica or member.id, []).append(member)
    return [
        Other(tuple(member.id for member in each), min(member.registered_at for member in each))
        for each in found.values()
    ]


def _on_roll(ask: Callable[[], T]) -> T:
    try:
        return ask()
    except StoreUnavailable as error:
        raise ReplicasUnavailable("the registry of workers cannot be read") from error
