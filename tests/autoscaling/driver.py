"""An autoscaler at work on a store, and what can be seen of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from penstock.domain.fact import FactFilter
from penstock.domain.scaling.fleet import Fleets
from penstock.domain.scaling.fleet_run import CircuitsState
from penstock.domain.scaling.fleet_status import DECISION, FleetStatus
from penstock.outbound.fleet_factory import FleetFactory
from penstock.outbound.http_sender import HttpSender
from penstock.outbound.replicas.launch import start_time
from penstock.outbound.replicas.ledger import LedgerState
from penstock.runtime.autoscaler.autoscaler import Autoscaler
from penstock.runtime.autoscaler.fleet_access import BackgroundThreads
from penstock.runtime.autoscaler.fleet_list import FleetList
from penstock.runtime.loop import DutyLoop
from penstock.services.scaling import ScalingService
from penstock.settings.fleets import parse_fleets
from penstock.wiring.autoscaling import OwnLoad, StoreFleetRegistry
from penstock.wiring.broker import Broker


class Text:
    """In place of a file."""

    def __init__(self, text: str) -> None:
        self.text = text

    def is_changed(self) -> bool:
        return False

    def read(self) -> Fleets:
        return parse_fleets(self.text)


class Driven:
    def __init__(self, broker: Broker, text: str, folder: Path) -> None:
        self.broker = broker
        self.folder = folder
        self.scaling = ScalingService(broker.store, broker.clock)
        self._sender = HttpSender(broker.clock, connections=2, keep_alive_ms=1_000)
        factory = FleetFactory(
            own=OwnLoad(broker.store),
            registry=StoreFleetRegistry(broker.workers, broker.store, broker.clock),
            sender=self._sender,
            clock=broker.clock,
            dice=broker.dice,
            folder=folder,
            store_url=broker.settings.store_url,
            wanted_before=lambda fleet: 0,
        )
        fleet_list = FleetList(Text(text), factory, seen_by="test", is_dry=False)
        self._autoscaler = Autoscaler(
            fleet_list,
            self.scaling,
            BackgroundThreads(),
            circuits_of_routes=lambda routes: CircuitsState.FREE,
            holder="test",
        )
        self._loop = DutyLoop([self._autoscaler], broker.clock)

    def start(self) -> None:
        self._loop.start()

    def close(self) -> None:
        self._loop.stop()
        self._autoscaler.close()
        self._sender.close()

    # ---- looking

    def status(self, fleet: str) -> FleetStatus | None:
        return next((one for one in self.scaling.all().result() if one.name == fleet), None)

    def decisions(self, fleet: str) -> list[dict[str, Any]]:
        """Those that were acted upon, oldest first."""
        wanted = FactFilter(kind=DECISION, subject=fleet, limit=1_000)
        facts = self.broker.facts.search(wanted).result()
        made = [msgspec.json.decode(fact.data) for fact in reversed(facts)]
        return [one for one in made if one["acted"]]

    def is_at_rest(self, fleet: str) -> bool:
        """True once no process runs and the decision was recorded, which happens last."""
        made = self.decisions(fleet)
        return bool(made) and made[-1]["wanted"] == 0 and not self.pids(fleet)

    def pids(self, fleet: str) -> list[int]:
        """Of its processes that run, those that are ending too."""
        path = self.folder / f"{fleet}.json"
        if not path.exists():
            return []
        book = msgspec.json.decode(path.read_bytes(), type=LedgerState)
        return [one.pid for one in book.started if start_time(one.pid) == one.start_time]
