"""Composes the autoscaler: the store, the fleets file, and the sources and managers it names.

Used by `penstock autoscale`, and by a server whose settings name a fleets file.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from penstock.domain.circuit.circuit import CircuitState, circuit_hash
from penstock.domain.errors import FleetNotFound, FleetsRefused
from penstock.domain.scaling.fleet_run import Way
from penstock.domain.scaling.fleet_status import FleetStatus
from penstock.outbound.fleet_factory import FleetFactory
from penstock.runtime.autoscaler.autoscaler import Autoscaler
from penstock.runtime.autoscaler.background import BackgroundThreads
from penstock.runtime.autoscaler.fleet_list import FleetList
from penstock.runtime.loop import DutyLoop
from penstock.services.circuits.circuits import Circuits
from penstock.settings.fleets import FleetsFile
from penstock.wiring.broker import Broker
from penstock.wiring.fleet_registry import StoreFleetRegistry
from penstock.wiring.own_load import OwnLoad
from penstock.wiring.pushing import own_sender

FOLDER = "fleets"  # in the data folder: the ledgers of started processes


class Autoscaling:
    def __init__(
        self,
        broker: Broker,
        path: Path | None = None,
        *,
        is_dry: bool = False,
        is_once: bool = False,
    ) -> None:
        """Raises FleetsRefused.  `is_once`: started processes outlive this process."""
        self._clock = broker.clock
        self._sender = own_sender(broker)
        holder = f"{platform.node()}-{os.getpid()}-{broker.dice.digits(6)}"
        factory = FleetFactory(
            own=OwnLoad(broker.store),
            registry=StoreFleetRegistry(broker.workers, broker.store, broker.clock),
            sender=self._sender,
            clock=broker.clock,
            dice=broker.dice,
            folder=Path(broker.settings.data) / FOLDER,
            store_url=broker.settings.store_url,
            wanted_before=_WantedBefore(broker),
            keeps=is_once or is_dry,
        )
        self._fleet_list = FleetList(
            FleetsFile(_file(broker)), factory, seen_by=holder, is_dry=is_dry
        )
        self._autoscaler = Autoscaler(
            self._fleet_list,
            broker.scaling,
            BackgroundThreads(),
            ways=_RouteStates(broker.circuits),
            holder=holder,
            is_dry=is_dry,
        )
        self._loop = DutyLoop(
            [self._autoscaler],
            broker.clock,
            name="penstock-autoscaler",
            health=broker.health,
            stuck_ms=broker.stuck_ms,
        )

    @property
    def names(self) -> list[str]:
        return [watch.name for watch in self._fleet_list]

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()
        self._close()

    def once(self, *, timeout_ms: int) -> list[FleetStatus] | None:
        """Run every fleet once and return the statuses; None if another autoscaler leads."""
        until = self._clock.now() + timeout_ms
        try:
            while (now := self._clock.now()) < until:
                next_at = self._autoscaler.tick(now)
                if not self._autoscaler.is_leading:
                    return None
                if all(self._autoscaler.runs.values()):
                    break
                threading.Event().wait(min(next_at - now, 100) / 1000)
        finally:
            self._close()
        return [watch.status for watch in self._fleet_list]

    def _close(self) -> None:
        try:
            self._autoscaler.close()
        finally:
            self._sender.close()


class _WantedBefore:
    def __init__(self, broker: Broker) -> None:
        self._scaling = broker.scaling

    def __call__(self, fleet: str) -> int:
        with suppress(FleetNotFound):
            return self._scaling.one(fleet).result().wanted or 0
        return 0


class _RouteStates:
    """The worst circuit state on a fleet's routes; FREE where circuits are not checked."""

    def __init__(self, circuits: Circuits) -> None:
        self._circuits = circuits

    def __call__(self, routes: Sequence[str]) -> Way:
        hashes = map(circuit_hash, routes)
        checked = [one for one in hashes if self._circuits.settings_of(one).circuit_check_enabled]
        states = {self._circuits.status(one).result() for one in checked}
        if CircuitState.OPEN in states:
            return Way.OPEN
        return Way.HALF_OPEN if CircuitState.HALF_OPEN in states else Way.FREE


def _file(broker: Broker) -> Path:
    named = broker.settings.scaling.fleets_file
    if not named:
        raise FleetsRefused("no fleets file is set: name one with --fleets or scaling.fleets_file")
    return Path(named)
