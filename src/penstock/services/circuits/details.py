"""A circuit for operators: recent outcomes and held queues."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from penstock.domain.circuit.circuit import RequestOutcome
from penstock.domain.limits import MINUTE
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Work, read

MAX_HELD = 1_000  # names in one answer
MAX_MINUTES = 500
_PAGE = 1_000


class Minute(msgspec.Struct, frozen=True):
    at: int
    successes: int
    failures: int

    @property
    def fail_ratio(self) -> int:
        """In percent, rounded like the circuit's own ratio."""
        return self.failures * 100 // (self.successes + self.failures)


class CircuitDetails:
    def __init__(self, store: Store) -> None:
        self._store = store

    def held_queues(self, circuit_hash: str) -> Work[list[str]]:
        """The names of its held queues, including those that wait to be unheld."""

        def do(session: Session) -> list[str]:
            return session.circuits.held_names(circuit_hash, limit=MAX_HELD)

        return read(self._store, do)

    def held_among(self, covers: Callable[[str], bool]) -> Work[dict[str, list[str]]]:
        """The held queues whose names `covers` accepts, by circuit."""

        def do(session: Session) -> dict[str, list[str]]:
            found: dict[str, list[str]] = {}
            after = ""
            while page := session.queues.page(prefix="", after=after, limit=_PAGE):
                for queue in page:
                    if queue.held_by is not None and covers(queue.name):
                        found.setdefault(queue.held_by, []).append(queue.name)
                after = page[-1].name
            return found

        return read(self._store, do)

    def minutes(self, circuit_hash: str) -> Work[list[Minute]]:
        """The stored outcomes, minute by minute, oldest first."""

        def do(session: Session) -> list[Minute]:
            counted: dict[int, list[int]] = {}
            for place, outcome in enumerate((RequestOutcome.SUCCESS, RequestOutcome.FAILURE)):
                for at in session.circuits.outcomes(circuit_hash, outcome).values():
                    counted.setdefault(at // MINUTE * MINUTE, [0, 0])[place] += 1
            return [Minute(at, *counted[at]) for at in sorted(counted)][-MAX_MINUTES:]

        return read(self._store, do)
