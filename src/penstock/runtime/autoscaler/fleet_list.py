"""The fleets of the fleets file with their sources and managers; follows changes of the file."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Protocol

from penstock.domain.errors import FleetsRefused
from penstock.domain.scaling.fleet import DEFAULT, Fleet, Fleets
from penstock.domain.scaling.fleet_sources import OWN, SourceSpec
from penstock.domain.scaling.pressure import Alert
from penstock.domain.scaling.profile_overrides import (
    NO_OVERRIDES,
    ProfileOverrides,
    merge_profile,
)
from penstock.ports.scaling import Alerts, LoadSource, ReplicaManager
from penstock.runtime.autoscaler.fleet_access import FleetAccess
from penstock.runtime.autoscaler.fleet_watch import FleetPlan, FleetWatch

_log = logging.getLogger("penstock.scaling")


class FleetsReader(Protocol):
    def is_changed(self) -> bool:
        """True if the file has changed since it was last read."""
        ...

    def read(self) -> Fleets:
        """Raises FleetsRefused."""
        ...


class PartsFactory(Protocol):
    """Creates what the file names.  Every method may raise FleetsRefused."""

    def source(self, name: str, spec: SourceSpec) -> LoadSource: ...
    def manager(self, fleet: Fleet) -> ReplicaManager: ...
    def alerts(self, fleets: Fleets) -> Alerts: ...


class FleetList:
    def __init__(
        self, file: FleetsReader, factory: PartsFactory, *, seen_by: str, is_dry: bool
    ) -> None:
        """Raises FleetsRefused if the file is not valid."""
        self._file = file
        self._factory = factory
        self._seen_by = seen_by
        self._is_dry = is_dry
        self._sources: dict[str, tuple[SourceSpec, LoadSource]] = {}
        self._watches: dict[str, FleetWatch] = {}
        self._overrides: Mapping[str, ProfileOverrides] = {}
        self.fleets = Fleets()
        self.alerts: Alerts = _NoAlerts()
        self._apply(file.read())

    def __iter__(self) -> Iterator[FleetWatch]:
        return iter(self._watches.values())

    def refresh(self, overrides: Mapping[str, ProfileOverrides]) -> set[str] | None:
        """Read the file if it has changed; returns the names of removed fleets, None: no change.

        `overrides`: settings of profiles that were changed in the store, by fleet.
        """
        has_new_overrides = overrides != self._overrides
        self._overrides = overrides
        if self._file.is_changed():
            try:
                return self._apply(self._file.read())
            except FleetsRefused as error:
                _log.error("the fleets file is not valid; the previous one stays in use: %s", error)
        return self._apply(self.fleets) if has_new_overrides else None

    def close(self) -> None:
        for watch in self:
            watch.access.manager.close()
        for _, source in self._sources.values():
            source.close()

    def _apply(self, fleets: Fleets) -> set[str]:
        old_sources, old_watches = self._sources, self._watches
        alerts = self._factory.alerts(fleets)
        sources = {name: self._source(name, spec) for name, spec in _named(fleets).items()}
        watches = {
            name: self._watch(fleet, fleets, sources) for name, fleet in fleets.fleets.items()
        }
        self.fleets, self.alerts = fleets, alerts
        self._sources, self._watches = sources, watches
        kept = {id(watch.access.manager) for watch in watches.values()}
        for watch in old_watches.values():
            if id(watch.access.manager) not in kept:
                watch.access.manager.close()
        for name, (_, source) in old_sources.items():
            if name not in sources or sources[name][1] is not source:
                source.close()
        _log.info("%d fleets in group %s", len(watches), fleets.group)
        return old_watches.keys() - watches.keys()

    def _source(self, name: str, spec: SourceSpec) -> tuple[SourceSpec, LoadSource]:
        known = self._sources.get(name)
        if known is not None and known[0] == spec:
            return known
        return spec, self._factory.source(name, spec)

    def _watch(
        self, fleet: Fleet, fleets: Fleets, sources: dict[str, tuple[SourceSpec, LoadSource]]
    ) -> FleetWatch:
        """The existing watch if nothing has changed for the fleet, else a new one."""
        if fleet.profile not in fleets.profiles:
            _log.warning(
                "fleet %s: profile %s does not exist; using %s", fleet.name, fleet.profile, DEFAULT
            )
        spec, source = sources[fleet.source]
        of_file = fleets.profile_of(fleet)
        profile = merge_profile(of_file, self._overrides.get(fleet.name, NO_OVERRIDES))
        plan = FleetPlan(fleets.group, fleet, profile, spec, of_file)
        known = self._watches.get(fleet.name)
        if known is not None and known.plan == plan and known.access.source is source:
            return known
        manager = _reusable_manager(known, fleet) or self._factory.manager(fleet)
        access = FleetAccess(fleet.all_queues, spec, source, manager)
        return FleetWatch(plan, access, seen_by=self._seen_by, is_dry=self._is_dry)


def _reusable_manager(known: FleetWatch | None, fleet: Fleet) -> ReplicaManager | None:
    """The existing manager, unless the work has changed: new limits must not restart workers."""
    if known is None:
        return None
    is_same = _work(known.fleet) == _work(fleet)
    return known.access.manager if is_same else None


def _work(fleet: Fleet) -> tuple[object, ...]:
    return fleet.all_queues, fleet.replicas


class _NoAlerts:
    def send(self, alert: Alert) -> None:
        """Drop it: the file has not been read yet."""


def _named(fleets: Fleets) -> dict[str, SourceSpec]:
    """The sources that fleets use; our own queues need not be declared."""
    used = {fleet.source: fleets.source_of(fleet) for fleet in fleets.fleets.values()}
    return dict(sorted(used.items(), key=lambda pair: pair[0] != OWN))
