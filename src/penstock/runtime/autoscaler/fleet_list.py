"""The fleets of the file and whom to ask about them; the file may change at any time."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Protocol

from penstock.domain.errors import FleetsRefused
from penstock.domain.scaling.fleet import DEFAULT, Fleet, Fleets
from penstock.domain.scaling.fleet_sources import OWN, SourceSpec
from penstock.domain.scaling.pressure import Alert
from penstock.ports.scaling import Alerts, LoadSource, ReplicaManager
from penstock.runtime.autoscaler.fleet_watch import Plan, Watch
from penstock.runtime.autoscaler.questions import Fleetside

_log = logging.getLogger("penstock.scaling")


class File(Protocol):
    def is_changed(self) -> bool:
        """Since it was read last."""
        ...

    def read(self) -> Fleets:
        """Raises FleetsRefused."""
        ...


class Outfit(Protocol):
    """Makes what the file names.  All of it may raise FleetsRefused."""

    def source(self, name: str, spec: SourceSpec) -> LoadSource: ...
    def manager(self, fleet: Fleet) -> ReplicaManager: ...
    def alerts(self, fleets: Fleets) -> Alerts: ...


class Roster:
    def __init__(self, file: File, outfit: Outfit, *, seen_by: str, is_dry: bool) -> None:
        """Raises FleetsRefused: without a file that can be understood nothing begins."""
        self._file = file
        self._outfit = outfit
        self._seen_by = seen_by
        self._is_dry = is_dry
        self._sources: dict[str, tuple[SourceSpec, LoadSource]] = {}
        self._watches: dict[str, Watch] = {}
        self.fleets = Fleets()
        self.alerts: Alerts = _Silence()
        self._apply(file.read())

    def __iter__(self) -> Iterator[Watch]:
        return iter(self._watches.values())

    def refresh(self) -> set[str] | None:
        """The names of fleets that are gone, if the file has changed; else None."""
        if not self._file.is_changed():
            return None
        try:
            return self._apply(self._file.read())
        except FleetsRefused as error:
            _log.error("the file of fleets is not taken, the old one holds: %s", error)
            return None

    def close(self) -> None:
        for watch in self:
            watch.side.manager.close()
        for _, source in self._sources.values():
            source.close()

    def _apply(self, fleets: Fleets) -> set[str]:
        old_sources, old_watches = self._sources, self._watches
        alerts = self._outfit.alerts(fleets)
        sources = {name: self._source(name, spec) for name, spec in _named(fleets).items()}
        watches = {
            name: self._watch(fleet, fleets, sources) for name, fleet in fleets.fleets.items()
        }
        self.fleets, self.alerts = fleets, alerts
        self._sources, self._watches = sources, watches
        kept = {id(watch.side.manager) for watch in watches.values()}
        for watch in old_watches.values():
            if id(watch.side.manager) not in kept:
                watch.side.manager.close()
        for name, (_, source) in old_sources.items():
            if name not in sources or sources[name][1] is not source:
                source.close()
        _log.info("%d fleets in group %s", len(watches), fleets.group)
        return old_watches.keys() - watches.keys()

    def _source(self, name: str, spec: SourceSpec) -> tuple[SourceSpec, LoadSource]:
        known = self._sources.get(name)
        if known is not None and known[0] == spec:
            return known
        return spec, self._outfit.source(name, spec)

    def _watch(
        self, fleet: Fleet, fleets: Fleets, sources: dict[str, tuple[SourceSpec, LoadSource]]
    ) -> Watch:
        """The same as before if nothing has changed for it, else one that begins anew."""
        if fleet.profile not in fleets.profiles:
            _log.warning(
                "fleet %s: there is no profile %s; %s is taken", fleet.name, fleet.profile, DEFAULT
            )
        spec, source = sources[fleet.source]
        plan = Plan(fleets.group, fleet, fleets.profile_of(fleet), spec)
        known = self._watches.get(fleet.name)
        if known is not None and known.plan == plan and known.side.source is source:
            return known
        manager = _as_before(known, fleet) or self._outfit.manager(fleet)
        side = Fleetside(fleet.all_queues, spec, source, manager)
        return Watch(plan, side, seen_by=self._seen_by, is_dry=self._is_dry)


def _as_before(known: Watch | None, fleet: Fleet) -> ReplicaManager | None:
    """Other limits are no reason to stop and start its workers."""
    if known is None:
        return None
    is_same = _work(known.fleet) == _work(fleet)
    return known.side.manager if is_same else None


def _work(fleet: Fleet) -> tuple[object, ...]:
    return fleet.all_queues, fleet.replicas


class _Silence:
    def send(self, alert: Alert) -> None:
        """Until the file has been read."""


def _named(fleets: Fleets) -> dict[str, SourceSpec]:
    """Those that fleets use; our own queues need not be declared."""
    used = {fleet.source: fleets.source_of(fleet) for fleet in fleets.fleets.values()}
    return dict(sorted(used.items(), key=lambda pair: pair[0] != OWN))
