"""The settings of the circuit breaker: defaults, and overrides of single circuits.

Each is one document of the store, the same for all nodes.  Each node keeps a copy; a duty checks
every second whether it has changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import msgspec

from penstock.domain.circuit import circuit as circuits
from penstock.domain.circuit import overrides
from penstock.domain.circuit.overrides import NONE, BreakerOverrides, merge
from penstock.domain.circuit.settings import BreakerSettings, check
from penstock.domain.document import Document, Latest
from penstock.domain.errors import InvalidRequest
from penstock.ports.clock import Clock
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Work, read, write
from penstock.services.documents import DocumentVersion

OVERRIDES = "circuit_breaker_overrides"

_log = logging.getLogger("penstock.circuits")
_overrides_decoder = msgspec.json.Decoder(dict[str, BreakerOverrides])

ByRoute = dict[str, BreakerOverrides]
ChangeOverrides = Callable[[BreakerOverrides], BreakerOverrides]
SETTINGS = "circuit_breaker"
DEFAULTS = BreakerSettings()
_decoder = msgspec.json.Decoder(BreakerSettings)
Change = Callable[[BreakerSettings], BreakerSettings]
SettingsOf = Callable[[str], BreakerSettings]  # by hash of the circuit


class Overrides:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept = DocumentVersion()
        self.by_hash: Mapping[str, BreakerOverrides] = {}  # by circuit, as last read
        self.is_any_checked = False
        self.is_any_unchecked = False
        self.is_any_counted = False

    def read(self, session: Session) -> ByRoute:
        """As stored."""
        return _read_overrides(session.documents.find(OVERRIDES))

    def change(self, session: Session, route: str, change: ChangeOverrides) -> BreakerOverrides:
        """Change overrides inside a transaction; empty ones are removed.  Raises InvalidRequest."""
        now = self._clock.now()
        by_route = _read_overrides(session.documents.lock(OVERRIDES, now=now))
        after = change(by_route.pop(route, NONE))
        overrides.read(after.values())
        if after != NONE:
            by_route[route] = after
        put = session.documents.put(OVERRIDES, msgspec.json.encode(by_route).decode(), now=now)
        data = {"version": put.version, "route": route}
        session.facts.add("breaker_changed", circuits.circuit_hash(route), at=now, data=data)
        self._take(by_route)
        self._kept.put(put.version, now=now)
        return after

    def refresh(self, session: Session) -> None:
        """Read them from the store.  A document that this version cannot read is ignored."""
        found = session.documents.latest(OVERRIDES)
        if not self._kept.is_news(found.version, now=self._clock.now()):
            return
        try:
            by_route = _read_overrides(found)
            for one in by_route.values():
                overrides.read(one.values())
        except (msgspec.DecodeError, InvalidRequest) as error:
            _log.warning("ignoring the stored settings of single circuits: %s", error)
        else:
            self._take(by_route)

    def _take(self, by_route: Mapping[str, BreakerOverrides]) -> None:
        self.by_hash = {circuits.circuit_hash(route): one for route, one in by_route.items()}
        found = by_route.values()
        self.is_any_checked = any(one.circuit_check_enabled is True for one in found)
        self.is_any_unchecked = any(one.circuit_check_enabled is False for one in found)
        self.is_any_counted = any(one.statistics_update_enabled is True for one in found)


def _read_overrides(found: Document | Latest | None) -> ByRoute:
    return {} if found is None or found.text is None else _overrides_decoder.decode(found.text)


class Breaker:
    """`settings` are the defaults of all circuits, `overrides` those of single ones."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.settings = DEFAULTS
        self.overrides = Overrides(clock)
        self._kept = DocumentVersion()

    def of(self, circuit_hash: str) -> BreakerSettings:
        """The settings in force for a circuit, as last read."""
        return self.in_force()(circuit_hash)

    def in_force(self) -> SettingsOf:
        """The same, from one snapshot that a transaction uses throughout."""
        defaults, by_hash = self.settings, self.overrides.by_hash

        def of(circuit_hash: str) -> BreakerSettings:
            overrides = by_hash.get(circuit_hash)
            return defaults if overrides is None else merge(defaults, overrides)

        return of

    @property
    def is_checking(self) -> bool:
        """Whether requests of any circuit need a permit."""
        return self.settings.circuit_check_enabled or self.overrides.is_any_checked

    @property
    def is_checking_all(self) -> bool:
        return self.settings.circuit_check_enabled and not self.overrides.is_any_unchecked

    @property
    def is_counting(self) -> bool:
        """Whether outcomes of any circuit are counted."""
        return self.settings.statistics_update_enabled or self.overrides.is_any_counted

    def get(self) -> Work[BreakerSettings]:
        return read(self._store, self.read)

    def read(self, session: Session) -> BreakerSettings:
        """The defaults, as stored."""
        return _read(session.documents.find(SETTINGS))

    def put(self, settings: BreakerSettings) -> Work[BreakerSettings]:
        """Replace the stored settings, or raise InvalidRequest and store nothing."""
        check(settings)
        return self.change(lambda _: settings)

    def change(self, change: Change) -> Work[BreakerSettings]:
        """Change the stored settings, one caller after the other.

        Its ticket raises InvalidRequest for invalid settings; then nothing is stored.
        """
        now = self._clock.now()

        def do(session: Session) -> BreakerSettings:
            before = _read(session.documents.lock(SETTINGS, now=now))
            settings = check(change(before))
            text = msgspec.json.encode(settings).decode()
            put = session.documents.put(SETTINGS, text, now=now)
            session.facts.add("breaker_changed", SETTINGS, at=now, data={"version": put.version})
            self._take(settings, put.version, now=now)
            return settings

        return write(self._store, do)

    def reset(self) -> Work[BreakerSettings]:
        now = self._clock.now()

        def do(session: Session) -> BreakerSettings:
            version = session.documents.remove(SETTINGS, now=now)
            if version:
                session.facts.add("breaker_changed", SETTINGS, at=now, data={"version": version})
                self._take(DEFAULTS, version, now=now)
            return DEFAULTS

        return write(self._store, do)

    def refresh(self, session: Session) -> None:
        """Read them from the store.  Settings that this version cannot read are ignored."""
        self.overrides.refresh(session)
        found = session.documents.latest(SETTINGS)
        if not self._kept.is_news(found.version, now=self._clock.now()):
            return
        try:
            self.settings = check(_read(found))
        except (msgspec.ValidationError, ValueError) as error:
            _log.warning("ignoring the stored settings of the breaker: %s", error)

    def _take(self, settings: BreakerSettings, version: int, *, now: int) -> None:
        self.settings = settings
        self._kept.put(version, now=now)


def _read(found: Document | Latest | None) -> BreakerSettings:
    return DEFAULTS if found is None or found.text is None else _decoder.decode(found.text)
