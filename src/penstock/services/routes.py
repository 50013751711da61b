"""Use cases of routes.  Their rules are one document of the store, the same for all nodes.

Each node keeps a copy; a duty checks every second whether it has changed.
"""

from __future__ import annotations

import logging

import msgspec

from penstock.domain.delivery.addresses import Guard
from penstock.domain.delivery.route import DeliveryRoute, RouteTable
from penstock.domain.delivery.uri import check_uri
from penstock.domain.document import Document
from penstock.domain.errors import InvalidRequest, RouteNotFound
from penstock.ports.clock import Clock
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Work, read, write
from penstock.services.circuits import transitions
from penstock.services.document_version import DocumentVersion
from penstock.services.route_rules import check_endpoints, parse_rules

RULES = "routing_rules"

_log = logging.getLogger("penstock.routes")


class Rules(msgspec.Struct, frozen=True):
    """Validated rules, as text and as a table."""

    text: str
    table: RouteTable


class RouteService:
    def __init__(self, store: Store, clock: Clock, *, denied: str = "") -> None:
        """`denied`: networks that no rule may lead to, besides those that are always denied."""
        self._store = store
        self._clock = clock
        self._guard = Guard(denied)
        self.table = RouteTable()
        self._kept = DocumentVersion()

    def match(self, uri: str, *, method: str | None = None) -> DeliveryRoute:
        """Raises RouteNotFound, or InvalidUri for a URI that cannot be routed."""
        found = self.table.match(check_uri(uri), method=method)
        if found is None:
            raise RouteNotFound(uri)
        return found

    def get(self) -> Work[Document | None]:
        return read(self._store, lambda session: session.documents.find(RULES))

    def parse(self, text: str) -> Rules:
        """Raises InvalidRequest.  Not for an event loop: thousands of rules take a second."""
        table = parse_rules(text)
        check_endpoints(table, self._guard)
        return Rules(text, table)

    def put(self, text: str) -> Work[Document]:
        """Replace all rules, or raise InvalidRequest; removes the circuits of removed patterns."""
        return self.keep(self.parse(text))

    def keep(self, rules: Rules) -> Work[Document]:
        """The second half of `put`: replace the rules with the parsed ones."""
        table, now = rules.table, self._clock.now()

        def do(session: Session) -> Document:
            self._drop_circuits(session, keeping=table, now=now)
            put = session.documents.put(RULES, rules.text, now=now)
            self._tell(session, table, put.version, now=now)
            self._take(table, put.version, now=now)
            return put

        return write(self._store, do)

    def remove(self) -> Work[bool]:
        """Remove all rules; returns whether there were any."""
        now = self._clock.now()

        def do(session: Session) -> bool:
            self._drop_circuits(session, keeping=RouteTable(), now=now)
            version = session.documents.remove(RULES, now=now)
            if version:
                self._tell(session, RouteTable(), version, now=now)
                self._take(RouteTable(), version, now=now)
            return bool(version)

        return write(self._store, do)

    def refresh(self, session: Session) -> None:
        """Read them from the store.  Rules that this version cannot read are ignored."""
        found = session.documents.latest(RULES)
        if not self._kept.is_news(found.version, now=self._clock.now()):
            return
        try:
            self.table = RouteTable() if found.text is None else parse_rules(found.text)
        except InvalidRequest as error:
            _log.warning("ignoring the stored rules of routes: %s", error)

    def _take(self, table: RouteTable, version: int, *, now: int) -> None:
        self.table = table
        self._kept.put(version, now=now)

    def _drop_circuits(self, session: Session, *, keeping: RouteTable, now: int) -> None:
        before = session.documents.to_change(RULES, now=now)
        try:
            table = parse_rules(before.text) if before else RouteTable()
        except InvalidRequest:  # written by another version
            table = self.table
        kept = keeping.patterns
        gone = {one: pattern for one, pattern in table.patterns.items() if one not in kept}
        if gone:
            transitions.close_and_remove(session, gone, now=now)

    def _tell(self, session: Session, table: RouteTable, version: int, *, now: int) -> None:
        data = {"version": version, "routes": len(table.routes)}
        session.facts.add("routes_changed", RULES, at=now, data=data)
