"""Circuits with two routes, and the moves that most tests of them make."""

from __future__ import annotations

import json
from typing import Any

from penstock.domain.circuit.circuit import (
    CircuitState,
    OutcomeReport,
    Permit,
    PermitAnswer,
    RequestOutcome,
    circuit_hash,
)
from penstock.domain.circuit.settings import BreakerSettings, BreakerTask
from penstock.domain.fact import Fact, FactFilter
from penstock.domain.queue.queue import Queue
from penstock.services.circuits.circuits import CircuitService
from penstock.services.circuits.permits import PermitRequest
from penstock.services.routes import RouteService
from tests.store.driver import StoreDriver

OPEN, HALF, CLOSED = CircuitState.OPEN, CircuitState.HALF_OPEN, CircuitState.CLOSED
FAILURE, SUCCESS = RequestOutcome.FAILURE, RequestOutcome.SUCCESS
GO, PROBE, HOLD = Permit.GO, Permit.PROBE, Permit.HOLD
PATTERN, OTHER = "/pay/(.*)", "/mail/(.*)"
HASH, OTHER_HASH = circuit_hash(PATTERN), circuit_hash(OTHER)
RULES = {
    PATTERN: {"url": "http://pay/$1", "metricName": "pay"},
    OTHER: {"url": "http://mail/$1", "methods": ["PUT"]},
}
SOON = BreakerTask(enabled=True, interval_ms=1_000)
ON: dict[str, Any] = {
    "circuit_check_enabled": True,
    "statistics_update_enabled": True,
    "min_queue_sample_count": 2,
    "open_to_half_open": SOON,
    "unlock_queues": SOON,
    "unlock_probes": SOON,
}


class CircuitDriver:
    """Circuits with two routes, and the moves that most tests make."""

    def __init__(self, store_driver: StoreDriver, store: Any = None) -> None:
        self.store_driver = store_driver
        self.store: Any = store or store_driver.store
        self.routes = RouteService(self.store, store_driver.clock)
        self.circuits = CircuitService(self.store, store_driver.clock, self.routes)

    def begin(self, **changes: Any) -> None:
        self.routes.put(json.dumps(RULES)).result()
        self.circuits.breaker.put(BreakerSettings(**(ON | changes))).result()

    def ask(self, queue: Queue | None = None, pattern: str = PATTERN) -> PermitAnswer:
        return self._asked(PermitRequest(pattern, queue.queue_no if queue else None))

    def ask_for_job(self, route: str = "stripe") -> PermitAnswer:
        return self._asked(PermitRequest(route, is_of_table=False))

    def _asked(self, wanted: PermitRequest) -> PermitAnswer:
        found = self.circuits.permits([wanted]).result()
        if not self.circuits.is_final(found):
            found = self.circuits.secure(found).result()
        return found[0]

    def report(
        self, permitted: PermitAnswer, outcome: RequestOutcome | None, name: str = "r"
    ) -> None:
        self.circuits.report([OutcomeReport(permitted, name, outcome)]).result()

    def fail(self, queue: Queue, count: int = 2, pattern: str = PATTERN) -> None:
        permitted = self.ask(queue, pattern)
        reports = [OutcomeReport(permitted, f"f{i}", FAILURE) for i in range(count)]
        self.circuits.report(reports).result()

    def half_open(self) -> None:
        self.circuits.half_open_all(now=self.store_driver.clock.advance(seconds=1)).result()

    @property
    def state(self) -> CircuitState:
        return self.circuits.status(HASH).result()

    def is_held(self, queue: Queue) -> bool:
        return self.store_driver.read(lambda s: s.queues.get(queue.queue_no)).held_by is not None

    def facts(self, subject: str = HASH) -> list[Fact]:
        found = self.store_driver.read(lambda s: s.facts.search(FactFilter(subject=subject)))
        return found[::-1]
