"""Random operations on circuits, in random batches: the store agrees with the model."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace

from penstock.domain.circuit.circuit import (
    CircuitState,
    OutcomeReport,
    PermitAnswer,
    RequestOutcome,
    circuit_hash,
)
from penstock.domain.circuit.overrides import BreakerOverrides
from penstock.domain.circuit.settings import BreakerSettings, BreakerTask
from penstock.services.circuits.circuits import CircuitService
from penstock.services.circuits.permits import PermitRequest
from penstock.services.directory import Directory
from penstock.services.queues import QueueService
from penstock.services.routes import RouteService
from tests.services.circuits.circuit_model import Model
from tests.store.driver import StoreDriver

PATTERNS = ("/a/(.*)", "/b/(.*)")
SOON = BreakerTask(enabled=True, interval_ms=1)
BASE: dict[str, Any] = {
    "circuit_check_enabled": True,
    "statistics_update_enabled": True,
    "error_threshold_percentage": 60,
    "entries_max_age_ms": 40,
    "min_queue_sample_count": 3,
    "max_queue_sample_count": 6,
    "open_to_half_open": SOON,
    "unlock_queues": SOON,
    "unlock_probes": SOON,
}
KINDS: list[dict[str, Any]] = [
    {},
    {"single_probe": True},
    {"single_probe": True, "unlock_growth": 2.0, "max_unlocks": 3, "open_growth": 2.0},
    {"statistics_update_enabled": False},
    {"circuit_check_enabled": False},
    {"circuit_check_enabled": False, "unlock_queues": BreakerTask(enabled=False, interval_ms=1)},
    {"unlock_queues": BreakerTask(enabled=False, interval_ms=1)},
    {"max_queue_sample_count": 2, "entries_max_age_ms": 5, "min_queue_sample_count": 1},
]


class ModelDriver:
    def __init__(
        self, store_driver: StoreDriver, settings: BreakerSettings, dice: random.Random
    ) -> None:
        self.store_driver = store_driver
        self.dice = dice
        queues = [store_driver.queue(f"q{i}") for i in range(4)]
        self.queue_nos = [queue.queue_no for queue in queues]
        routes = RouteService(store_driver.store, store_driver.clock)
        rules = ", ".join(f'"{pattern}": {{"url": "http://h/"}}' for pattern in PATTERNS)
        routes.put("{" + rules + "}").result()
        self.circuits = CircuitService(store_driver.store, store_driver.clock, routes)
        self.circuits.breaker.put(settings).result()
        patterns = {circuit_hash(pattern): pattern for pattern in PATTERNS}
        self.queues = QueueService(
            store_driver.store,
            store_driver.clock,
            Directory(store_driver.store, store_driver.clock),
        )
        self.model = Model(settings, {q.queue_no: q.name for q in queues}, patterns)
        self.seen: set[CircuitState] = set()
        self.permits: list[PermitAnswer] = []

    def use(self, settings: BreakerSettings) -> None:
        self.circuits.breaker.put(settings).result()
        self.model.settings = settings

    def override(self, pattern: str, changes: dict[str, Any]) -> None:
        one = circuit_hash(pattern)
        self.circuits.own_settings.change(one, lambda _: BreakerOverrides(**changes)).result()
        self.model.own[one] = replace(self.model.settings, **changes)

    def step(self) -> None:
        self.store_driver.clock.advance(ms=self.dice.randint(1, 8))
        acts = [self.ask] * 4 + [self.report] * 6 + [self.tick] * 4 + [self.by_hand]
        self.dice.choice(acts)()
        self.check()

    def ask(self) -> None:
        wanted = [
            PermitRequest(self.dice.choice(PATTERNS), self.dice.choice(self.queue_nos))
            for _ in range(self.dice.randint(1, 4))
        ]
        now = self.store_driver.now
        found = self.circuits.permits(wanted).result()
        assert [one.permit for one in found] == [
            self.model.permit(one.pattern, now=now) for one in wanted
        ]
        if not self.circuits.is_final(found):
            # Once more for all of a circuit that was not closed: the present state counts.
            expected = [
                one.permit
                if one.permit == "go"
                else self.model.secure(one.pattern, one.queue_no or 0, now=now)
                for one in found
            ]
            found = self.circuits.secure(found).result()
            assert [one.permit for one in found] == expected
        self.permits += found

    def report(self) -> None:
        count = self.dice.randint(1, 9)
        reports = [
            OutcomeReport(
                self.dice.choice(self.permits),
                self.dice.choice("abcdefghij"),
                self.dice.choice(
                    [*[RequestOutcome.FAILURE] * 5, *[RequestOutcome.SUCCESS] * 3, None]
                ),
            )
            for _ in range(count if self.permits else 0)
        ]
        self.circuits.report(reports).result()
        self.model.report(reports, now=self.store_driver.now)
        self.permits = self.permits[-6:]

    def tick(self) -> None:
        now = self.store_driver.now
        match self.dice.randint(0, 3):
            case 0:
                assert self.circuits.half_open_all(now=now).result().done is not None
                self.model.half_open(now=now)
            case 1:
                assert self.circuits.release_probes(now=now).result().done is not None
                self.model.release_probes(now=now)
            case 2:
                self.circuits.held_queues.release_idle()
                self.model.release_idle()
            case _:
                assert self.circuits.release_next(now=now).result().done is not None
                self.model.release_next()

    def by_hand(self) -> None:
        one = circuit_hash(self.dice.choice(PATTERNS))
        if self.dice.random() < 0.2:
            queue_no = self.dice.choice(self.queue_nos)
            self.queues.unhold(self.model.names[queue_no]).result()
            self.model.unhold(queue_no)
        elif self.dice.random() < 0.4:
            self.circuits.force_open(one).result()
            self.model.force_open(one, now=self.store_driver.now)
        elif self.dice.random() < 0.7:
            self.circuits.close(one).result()
            self.model.close(one)
        else:
            self.circuits.close_all().result()
            self.model.close_all()

    def check(self) -> None:
        model, store_driver = self.model, self.store_driver
        found = store_driver.read(lambda s: s.circuits.all())
        assert found == model.circuits
        self.seen |= {circuit.state for circuit in found.values()}
        for one in found:
            for outcome in RequestOutcome:
                outcomes = store_driver.read(lambda s: s.circuits.outcomes(one, outcome))  # noqa: B023
                expected = model.outcomes.get(one)
                assert outcomes == (getattr(expected, outcome) if expected else {})
            held = {h.queue: h.at for h in store_driver.read(lambda s: s.circuits.held(one))}  # noqa: B023
            assert held == {model.names[no]: at for no, at in model.held.get(one, {}).items()}
        assert store_driver.read(lambda s: s.circuits.next_for_release(100)) == model.queued
        get = store_driver.read
        is_held = {no for no in self.queue_nos if get(lambda s: s.queues.get(no)).held_by}  # noqa: B023
        assert is_held == model.is_held


OWN: list[dict[str, Any]] = [
    {"error_threshold_percentage": 20, "min_queue_sample_count": 1, "single_probe": True},
    {"max_queue_sample_count": 2, "entries_max_age_ms": 5, "min_open_ms": 30},
    {"circuit_check_enabled": False},
    {"statistics_update_enabled": False},
]


@pytest.mark.parametrize("changes", OWN)
def test_the_store_has_what_the_rules_say_by_the_settings_of_each_circuit(
    store_driver: StoreDriver, changes: dict[str, Any]
) -> None:
    driver = ModelDriver(store_driver, BreakerSettings(**BASE), random.Random(5))

    driver.override(PATTERNS[1], changes)
    for _ in range(60):
        driver.step()

    assert driver.seen == set(CircuitState), "otherwise nothing was tried"


@pytest.mark.parametrize("changes", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_the_store_has_what_the_rules_say(
    store_driver: StoreDriver, changes: dict[str, Any], seed: int
) -> None:
    driver = ModelDriver(store_driver, BreakerSettings(**BASE), random.Random(seed))

    for _ in range(30):
        driver.step()
    driver.use(BreakerSettings(**(BASE | changes)))
    for _ in range(40):
        driver.step()

    assert driver.seen == set(CircuitState), "otherwise nothing was tried"
