"""The autoscaler put together: with a store, a file of fleets, and whom the file names.

Used by `penstock autoscale`, and by a server whose settings name a file of fleets.
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
from penstock.domain.scaling.fleet_run import CircuitsState
from penstock.domain.scaling.fleet_status import FleetStatus
from penstock.outbound.fleet_factory import Outfit
from penstock.runtime.autoscaler.autoscaler import Autoscaler
from penstock.runtime.autoscaler.background import Threads
from penstock.runtime.autoscaler.fleet_list import Roster
from penstock.runtime.loop import DutyLoop
from penstock.services.circuits.circuits import CircuitService
from penstock.settings.fleets import FleetsFile
from penstock.wiring.broker import Broker
from penstock.wiring.fleet_registry import OwnFleetRoll
from penstock.wiring.own_load import OwnLoad
from penstock.wiring.pushing import own_sender

FOLDER = "fleets"  # in the data folder: which processes were started


class Autoscaling:
    def __init__(
        self,
        broker: Broker,
        path: Path | None = None,
        *,
        is_dry: bool = False,
        is_once: bool = False,
    ) -> None:
        """Raises FleetsRefused.  `is_once`: what is started stays when this process ends."""
        self._clock = broker.clock
        self._sender = own_sender(broker)
        holder = f"{platform.node()}-{os.getpid()}-{broker.dice.digits(6)}"
        outfit = Outfit(
            own=OwnLoad(broker.store),
            roll=OwnFleetRoll(broker.workers, broker.store, broker.clock),
            sender=self._sender,
            clock=broker.clock,
            dice=broker.dice,
            folder=Path(broker.settings.data) / FOLDER,
            store_url=broker.settings.store_url,
            wanted_before=_WantedBefore(broker),
            keeps=is_once or is_dry,
        )
        self._roster = Roster(FleetsFile(_file(broker)), outfit, seen_by=holder, is_dry=is_dry)
        self._autoscaler = Autoscaler(
            self._roster,
            broker.scaling,
            Threads(),
            ways=_Ways(broker.circuits),
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
        return [watch.name for watch in self._roster]

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()
        self._close()

    def once(self, *, timeout_ms: int) -> list[FleetStatus] | None:
        """One run of every fleet, and what came of it; None if another autoscaler leads."""
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
        return [watch.status for watch in self._roster]

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


class _Ways:
    """The worst of the circuits on the way of a fleet's work; without a breaker all are free."""

    def __init__(self, circuits: CircuitService) -> None:
        self._circuits = circuits

    def __call__(self, routes: Sequence[str]) -> CircuitsState:
        hashes = map(circuit_hash, routes)
        checked = [one for one in hashes if self._circuits.settings_of(one).circuit_check_enabled]
        states = {self._circuits.status(one).result() for one in checked}
        if CircuitState.OPEN in states:
            return CircuitsState.OPEN
        return CircuitsState.HALF_OPEN if CircuitState.HALF_OPEN in states else CircuitsState.FREE


def _file(broker: Broker) -> Path:
    named = broker.settings.scaling.fleets_file
    if not named:
        raise FleetsRefused(
            "there is no file of fleets: name one with --fleets, or with scaling.fleets_file"
        )
    return Path(named)
