"""Settings of single circuits: one document of the store, by route, the same for all nodes.

Each node keeps a copy; a duty checks every second whether it has changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import msgspec

from penstock.domain.circuit import overrides
from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.circuit.overrides import NONE, BreakerOverrides
from penstock.domain.document import Document, Latest
from penstock.domain.errors import InvalidRequest
from penstock.ports.clock import Clock
from penstock.ports.store import Session
from penstock.services.document_version import DocumentVersion

OVERRIDES = "circuit_breaker_overrides"

_log = logging.getLogger("penstock.circuits")
_decoder = msgspec.json.Decoder(dict[str, BreakerOverrides])

ByRoute = dict[str, BreakerOverrides]
Change = Callable[[BreakerOverrides], BreakerOverrides]


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
        return _read(session.documents.find(OVERRIDES))

    def change(self, session: Session, route: str, change: Change) -> BreakerOverrides:
        """Change overrides inside a transaction; empty ones are removed.  Raises InvalidRequest."""
        now = self._clock.now()
        by_route = _read(session.documents.to_change(OVERRIDES, now=now))
        after = change(by_route.pop(route, NONE))
        overrides.read(after.values())
        if after != NONE:
            by_route[route] = after
        put = session.documents.put(OVERRIDES, msgspec.json.encode(by_route).decode(), now=now)
        data = {"version": put.version, "route": route}
        session.facts.add("breaker_changed", circuit_hash(route), at=now, data=data)
        self._take(by_route)
        self._kept.put(put.version, now=now)
        return after

    def refresh(self, session: Session) -> None:
        """Read them from the store.  A document that this version cannot read is ignored."""
        found = session.documents.latest(OVERRIDES)
        if not self._kept.is_news(found.version, now=self._clock.now()):
            return
        try:
            by_route = _read(found)
            for one in by_route.values():
                overrides.read(one.values())
        except (msgspec.DecodeError, InvalidRequest) as error:
            _log.warning("ignoring the stored settings of single circuits: %s", error)
        else:
            self._take(by_route)

    def _take(self, by_route: Mapping[str, BreakerOverrides]) -> None:
        self.by_hash = {circuit_hash(route): one for route, one in by_route.items()}
        found = by_route.values()
        self.is_any_checked = any(one.circuit_check_enabled is True for one in found)
        self.is_any_unchecked = any(one.circuit_check_enabled is False for one in found)
        self.is_any_counted = any(one.statistics_update_enabled is True for one in found)


def _read(found: Document | Latest | None) -> ByRoute:
    return {} if found is None or found.text is None else _decoder.decode(found.text)
