"""Circuits in a store, as short calls."""

from __future__ import annotations

from typing import Any

from penstock.domain.circuit import circuit as circuits
from penstock.domain.circuit.circuit import Circuit, CircuitState, Held, Outcome, circuit_hash
from penstock.domain.circuit.outcome_window import note_all
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.queue.queue import Queue
from penstock.ports.store import Session
from tests.store.desk import Desk

OPEN, HALF, CLOSED = CircuitState.OPEN, CircuitState.HALF_OPEN, CircuitState.CLOSED
FAILURE, SUCCESS = Outcome.FAILURE, Outcome.SUCCESS
PATTERN = "/playground/(.*)"
HASH = circuit_hash(PATTERN)
OTHER = "/other/(.*)"
OTHER_HASH = circuit_hash(OTHER)
SETTINGS = BreakerSettings(max_queue_sample_count=5, entries_max_age_ms=1_000)


def add(desk: Desk, pattern: str = PATTERN, **changes: Any) -> Circuit:
    """A circuit as it stands in the store."""
    wanted = Circuit(pattern=pattern, **changes)

    def do(session: Session) -> Circuit:
        session.circuits.to_note({circuit_hash(pattern): pattern})
        session.circuits.save({circuit_hash(pattern): wanted})
        return wanted

    return desk.write(do)


def get(desk: Desk, one: str = HASH) -> Circuit | None:
    return desk.read(lambda s: s.circuits.find([one])).get(one)


def note(desk: Desk, *batch: tuple[str, Outcome], pattern: str = PATTERN) -> Circuit:
    """As one report; the ratio and all else as the domain says."""
    one = circuit_hash(pattern)
    since = desk.now - SETTINGS.entries_max_age_ms

    def do(session: Session) -> Circuit:
        found = session.circuits.to_note({one: pattern})[one]
        most = SETTINGS.max_queue_sample_count
        lines = session.circuits.lines({one: batch}, since=since, most=most)
        after, _ = note_all(found, lines[one], batch, SETTINGS, now=desk.now)
        session.circuits.keep_lines(lines)
        session.circuits.save({one: after})
        return after

    return desk.write(do)


def samples(desk: Desk, outcome: Outcome, one: str = HASH) -> dict[str, int]:
    return desk.read(lambda s: s.circuits.samples(one, outcome))


def hold(desk: Desk, *queues: Queue, pattern: str = PATTERN) -> None:
    """At one instant."""
    one = circuit_hash(pattern)
    nos = [queue.queue_no for queue in queues]

    def do(session: Session) -> None:
        session.circuits.to_note({one: pattern})
        session.circuits.hold(one, nos, now=desk.now)
        session.queues.hold(nos, by=one)

    desk.write(do)
    desk.clock.advance(ms=1)


def held(desk: Desk, one: str = HASH) -> list[Held]:
    return desk.read(lambda s: s.circuits.held(one))


def let_go(desk: Desk, *hashes: str) -> None:
    def do(session: Session) -> None:
        found = session.circuits.to_change(hashes)
        session.circuits.let_go(hashes)
        session.circuits.save({one: circuits.close(it) for one, it in found.items()})

    desk.write(do)


def line(desk: Desk) -> list[int]:
    return desk.read(lambda s: s.circuits.line(100))
