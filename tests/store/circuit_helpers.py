"""Helpers for tests of circuits in a store."""

from __future__ import annotations

from typing import Any

from penstock.domain.circuit import circuit as circuits
from penstock.domain.circuit.circuit import (
    Circuit,
    CircuitState,
    HeldQueue,
    RequestOutcome,
    circuit_hash,
)
from penstock.domain.circuit.outcome_window import note_all
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.queue.queue import Queue
from penstock.ports.store import Session
from tests.store.driver import StoreDriver

OPEN, HALF, CLOSED = CircuitState.OPEN, CircuitState.HALF_OPEN, CircuitState.CLOSED
FAILURE, SUCCESS = RequestOutcome.FAILURE, RequestOutcome.SUCCESS
PATTERN = "/playground/(.*)"
HASH = circuit_hash(PATTERN)
OTHER = "/other/(.*)"
OTHER_HASH = circuit_hash(OTHER)
SETTINGS = BreakerSettings(max_queue_sample_count=5, entries_max_age_ms=1_000)


def add(driver: StoreDriver, pattern: str = PATTERN, **changes: Any) -> Circuit:
    """Add a circuit; returns it as it is stored."""
    wanted = Circuit(pattern=pattern, **changes)

    def do(session: Session) -> Circuit:
        session.circuits.lock_or_add({circuit_hash(pattern): pattern})
        session.circuits.save({circuit_hash(pattern): wanted})
        return wanted

    return driver.write(do)


def get(driver: StoreDriver, one: str = HASH) -> Circuit | None:
    return driver.read(lambda s: s.circuits.find([one])).get(one)


def note(
    driver: StoreDriver, *batch: tuple[str, RequestOutcome], pattern: str = PATTERN
) -> Circuit:
    """Record outcomes as one report."""
    one = circuit_hash(pattern)
    since = driver.now - SETTINGS.entries_max_age_ms

    def do(session: Session) -> Circuit:
        found = session.circuits.lock_or_add({one: pattern})[one]
        most = SETTINGS.max_queue_sample_count
        windows = session.circuits.windows({one: batch}, since=since, most=most)
        after, _ = note_all(found, windows[one], batch, SETTINGS, now=driver.now)
        session.circuits.save_windows(windows)
        session.circuits.save({one: after})
        return after

    return driver.write(do)


def outcomes(driver: StoreDriver, outcome: RequestOutcome, one: str = HASH) -> dict[str, int]:
    return driver.read(lambda s: s.circuits.outcomes(one, outcome))


def hold(driver: StoreDriver, *queues: Queue, pattern: str = PATTERN) -> None:
    """Hold queues, all at the same instant."""
    one = circuit_hash(pattern)
    nos = [queue.queue_no for queue in queues]

    def do(session: Session) -> None:
        session.circuits.lock_or_add({one: pattern})
        session.circuits.hold(one, nos, now=driver.now)
        session.queues.hold(nos, by=one)

    driver.write(do)
    driver.clock.advance(ms=1)


def held(driver: StoreDriver, one: str = HASH) -> list[HeldQueue]:
    return driver.read(lambda s: s.circuits.held(one))


def release(driver: StoreDriver, *hashes: str) -> None:
    def do(session: Session) -> None:
        found = session.circuits.lock(hashes)
        session.circuits.queue_for_release_and_forget(hashes)
        session.circuits.save({one: circuits.close(it) for one, it in found.items()})

    driver.write(do)


def queued_for_release(driver: StoreDriver) -> list[int]:
    return driver.read(lambda s: s.circuits.next_for_release(100))
