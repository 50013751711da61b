"""The settings of the circuit breaker: one document of the store, the same for all nodes.

Each node keeps them as they were read last; a duty looks every second whether they have changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from penstock.domain.breaker_settings import BreakerSettings, check
from penstock.domain.document import Document, Latest
from penstock.ports.clock import Clock
from penstock.ports.store import Session, Store
from penstock.ports.ticket import Ticket
from penstock.services.kept import Kept

SETTINGS = "circuit_breaker"
DEFAULTS = BreakerSettings()

_log = logging.getLogger("penstock.circuits")
_decoder = msgspec.json.Decoder(BreakerSettings)

Change = Callable[[BreakerSettings], BreakerSettings]


class Breaker:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.settings = DEFAULTS
        self._kept = Kept()

    def get(self) -> Ticket[BreakerSettings]:
        return self._store.read(lambda session: _read(session.documents.find(SETTINGS)))

    def put(self, settings: BreakerSettings) -> Ticket[BreakerSettings]:
        """Raises InvalidRequest; then nothing is kept."""
        check(settings)
        return self.change(lambda _: settings)

    def change(self, change: Change) -> Ticket[BreakerSettings]:
        """What they are made into; two who change them at once change what the other has left.

        Its ticket raises InvalidRequest for what they cannot be; then nothing is kept.
        """
        now = self._clock.now()

        def do(session: Session) -> BreakerSettings:
            before = _read(session.documents.to_change(SETTINGS, now=now))
            settings = check(change(before))
            text = msgspec.json.encode(settings).decode()
            put = session.documents.put(SETTINGS, text, now=now)
            session.facts.add("breaker_changed", SETTINGS, at=now, data={"version": put.version})
            self._take(settings, put.version, now=now)
            return settings

        return self._store.write(do)

    def reset(self) -> Ticket[BreakerSettings]:
        now = self._clock.now()

        def do(session: Session) -> BreakerSettings:
            version = session.documents.remove(SETTINGS, now=now)
            if version:
                session.facts.add("breaker_changed", SETTINGS, at=now, data={"version": version})
                self._take(DEFAULTS, version, now=now)
            return DEFAULTS

        return self._store.write(do)

    def refresh(self, session: Session) -> None:
        """As they are in the store.  Settings that this version cannot read change nothing."""
        found = session.documents.latest(SETTINGS)
        if not self._kept.is_news(found.version, now=self._clock.now()):
            return
        try:
            self.settings = check(_read(found))
        except (msgspec.ValidationError, ValueError) as error:
            _log.warning("the settings of the breaker in the store are not taken: %s", error)

    def _take(self, settings: BreakerSettings, version: int, *, now: int) -> None:
        self.settings = settings
        self._kept.put(version, now=now)


def _read(found: Document | Latest | None) -> BreakerSettings:
    return DEFAULTS if found is None or found.text is None else _decoder.decode(found.text)
