"""An autoscaler with fleets of fakes: tests change what the fakes return, and advance the clock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import msgspec

from penstock.domain.errors import FleetsRefused
from penstock.domain.fact import FactFilter
from penstock.domain.scaling.fleet import External, Fleet, Fleets
from penstock.domain.scaling.fleet_run import CircuitsState
from penstock.domain.scaling.fleet_sources import OwnSource, SourceSpec
from penstock.domain.scaling.fleet_status import FleetStatus
from penstock.domain.scaling.pressure import Alert
from penstock.domain.scaling.recommendation import Profile, Sample
from penstock.ports.scaling import Alerts, LoadSource, ReplicaManager
from penstock.runtime.autoscaler.autoscaler import Autoscaler
from penstock.runtime.autoscaler.fleet_list import FleetList
from penstock.services.scaling import ScalingService
from tests.fakes import FakeLoad, FakeReplicas
from tests.store.driver import StoreDriver

T = TypeVar("T")

BUSY = Sample(ready=100, consume_rate=1.0)
QUIET = Sample(ready=0)


class AtOnce:
    """What is asked background is answered before anything else happens."""

    def begin(self, name: str, what: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        future.set_result(what())
        return future


class Slow:
    """What is asked of these fleets is answered when the test says so."""

    def __init__(self, *fleets: str) -> None:
        self.fleets = set(fleets)
        self.waiting: list[tuple[Callable[[], Any], Future[Any]]] = []

    def begin(self, name: str, what: Callable[[], T]) -> Future[T]:
        if name not in self.fleets:
            return AtOnce().begin(name, what)
        future: Future[T] = Future()
        self.waiting.append((what, future))
        return future

    def answer(self) -> None:
        waiting, self.waiting = self.waiting, []
        for what, future in waiting:
            future.set_result(what())


class Text:
    """A file of fleets, without a disk."""

    def __init__(self, fleets: Fleets) -> None:
        self.fleets: Fleets | FleetsRefused = fleets
        self._read: object = None

    def is_changed(self) -> bool:
        return self._read is not self.fleets

    def read(self) -> Fleets:
        self._read = self.fleets
        if isinstance(self.fleets, FleetsRefused):
            raise self.fleets
        return self.fleets


class AutoscalerDriver:
    def __init__(self, store_driver: StoreDriver) -> None:
        self.store_driver = store_driver
        self.scaling = ScalingService(store_driver.store, store_driver.clock)
        self.loads: dict[str, FakeLoad] = {}
        self.managers: dict[str, FakeReplicas] = {}
        self.made: list[str] = []  # managers, in their order
        self.alerts: list[Alert] = []
        self.way = CircuitsState.FREE
        self.text = Text(Fleets())
        self.autoscaler: Autoscaler

    # ---- what the file names

    def source(self, name: str, spec: SourceSpec) -> LoadSource:
        return self.loads.setdefault(name, FakeLoad())

    def manager(self, fleet: Fleet) -> ReplicaManager:
        self.made.append(fleet.name)
        return self.managers.setdefault(fleet.name, FakeReplicas())

    def alerts_of(self) -> Alerts:
        driver = self

        class RecordedAlerts:
            def send(self, alert: Alert) -> None:
                driver.alerts.append(alert)

        return RecordedAlerts()

    # ---- moves of tests

    def fleets(self, *fleets: Fleet, **more: Any) -> Fleets:
        wanted = {
            "profiles": {"default": Profile(samples_needed=2, backlog_goal_s=1)},
            "sources": {one.source: OwnSource() for one in fleets},
            "fleets": {one.name: one for one in fleets},
            **more,
        }
        return Fleets(**wanted)

    def start(
        self,
        *fleets: Fleet,
        background: Any = None,
        is_dry: bool = False,
        holder: str = "one",
        **more: Any,
    ) -> Autoscaler:
        self.text = Text(self.fleets(*(fleets or (fleet("mail"),)), **more))
        self.autoscaler = self.another(holder=holder, background=background, is_dry=is_dry)
        return self.autoscaler

    def another(self, *, holder: str, background: Any = None, is_dry: bool = False) -> Autoscaler:
        """Of the same file and the same workers."""
        fleet_list = FleetList(self.text, _Outfit(self), seen_by=holder, is_dry=is_dry)
        return Autoscaler(
            fleet_list,
            self.scaling,
            background or AtOnce(),
            circuits_of_routes=lambda routes: self.way,
            holder=holder,
            is_dry=is_dry,
        )

    def tick(self, autoscaler: Autoscaler | None = None) -> int:
        return (autoscaler or self.autoscaler).tick(self.store_driver.now)

    def run(self, times: int = 1, *, seconds: int = 10) -> None:
        """So many runs, with the time between them."""
        for _ in range(times):
            self.tick()
            self.store_driver.clock.advance(seconds=seconds)

    def load(self, sample: Sample | Exception, source: str = "own") -> None:
        self.loads.setdefault(source, FakeLoad()).sample = sample

    def status(self, name: str = "mail") -> FleetStatus:
        return self.scaling.get(name).result()

    def facts(self, kind: str, subject: str | None = None) -> list[dict[str, Any]]:
        """Oldest first."""
        wanted = FactFilter(kind=kind, subject=subject)
        found = self.store_driver.read(lambda s: s.facts.search(wanted))
        return [msgspec.json.decode(fact.data) for fact in reversed(found)]

    def decisions(self, fleet: str = "mail") -> list[tuple[int, str, bool]]:
        """By how many, why, and whether it was done."""
        found = self.facts("scaling_decision", fleet)
        return [(fact["change"], fact["reason"], fact["acted"]) for fact in found]


class _Outfit:
    def __init__(self, driver: AutoscalerDriver) -> None:
        self._driver = driver

    def source(self, name: str, spec: SourceSpec) -> LoadSource:
        return self._driver.source(name, spec)

    def manager(self, fleet: Fleet) -> ReplicaManager:
        return self._driver.manager(fleet)

    def alerts(self, fleets: Fleets) -> Alerts:
        return self._driver.alerts_of()


def fleet(name: str, **more: Any) -> Fleet:
    return Fleet(**{"name": name, "queue": name, "replicas": External(), "max": 50, **more})
