"""Use cases of circuits: permits for requests, reports of their outcomes, opening, closing.

The state is in the store, for all nodes; only the settings are cached here.  A request needs a
permit before it is tried (`permits`, then `secure` unless the answer is go), and its outcome is
reported afterwards (`report`).  Both take many requests at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from penstock.domain.circuit import circuit as circuits
from penstock.domain.circuit.circuit import (
    Circuit,
    CircuitState,
    OutcomeReport,
    Permit,
    PermitAnswer,
)
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.errors import CircuitNotFound
from penstock.ports.clock import Clock
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Steps, Work, read, write
from penstock.services.circuits import transitions
from penstock.services.circuits.breaker import Breaker, SettingsOf
from penstock.services.circuits.circuit_settings import CircuitSettingsService
from penstock.services.circuits.held_queues import HeldQueues
from penstock.services.circuits.permits import (
    PermitRequest,
    Reporting,
    answer,
    decide,
    is_alone,
    is_waiting,
    with_waits,
)
from penstock.services.routes import RouteService

NOT_CLOSED = (CircuitState.OPEN, CircuitState.HALF_OPEN)

HALF_OPEN_DUTY = "circuits.half_open"
RELEASE_DUTY = "circuits.unhold"
PROBE_DUTY = "circuits.probe"

Do = Callable[[Session, int], int]


class CircuitView(msgspec.Struct, frozen=True):
    hash: str
    circuit: Circuit
    metric_name: str | None
    held: int  # queues, including those that wait to be unheld
    awaiting_unhold: int = 0  # of these: the circuit has closed, and they wait for release


class CircuitsOverview(msgspec.Struct, frozen=True):
    circuits: dict[str, CircuitView]
    held: dict[str, int]  # queues by circuit, including removed circuits
    awaiting_unhold: int  # queues, of all circuits together


class TickResult(msgspec.Struct, frozen=True):
    """What a cluster duty has done; None if another node ran it."""

    next_at: int
    done: int | None


class CircuitService:
    def __init__(self, store: Store, clock: Clock, routes: RouteService) -> None:
        self._store = store
        self._clock = clock
        self._routes = routes
        self.breaker = Breaker(store, clock)
        self.held_queues = HeldQueues(store, clock, self.breaker)
        self.own_settings = CircuitSettingsService(store, routes, self.breaker)

    # ---- settings

    @property
    def settings(self) -> BreakerSettings:
        """As last read."""
        return self.breaker.settings

    def settings_of(self, circuit_hash: str) -> BreakerSettings:
        """The settings of a circuit: the defaults with its overrides."""
        return self.breaker.of(circuit_hash)

    @property
    def is_checking(self) -> bool:
        """Whether requests need permits."""
        return self.breaker.is_checking

    @property
    def is_watching(self) -> bool:
        """Whether requests need permits or their outcomes are counted."""
        return self.is_checking or self.breaker.is_counting

    def refresh(self) -> None:
        """Read settings and routes from the store."""

        def do(session: Session) -> None:
            self._routes.refresh(session)
            self.breaker.refresh(session)

        self._store.read(do).result()

    # ---- permits and outcomes

    def unchecked(self, pattern: str, queue_no: int | None = None) -> PermitAnswer:
        """The permit of every request while circuits are not checked."""
        return answer(PermitRequest(pattern, queue_no), Permit.GO, None)

    def permits(self, wanted: Sequence[PermitRequest]) -> Work[list[PermitAnswer]]:
        """Read the current permits; holds no queue and reserves no probe yet (see `secure`)."""
        settings_of, now = self.breaker.in_force(), self._clock.now()

        def do(session: Session) -> list[PermitAnswer]:
            hashes = {one.pattern: circuits.circuit_hash(one.pattern) for one in wanted}
            found = session.circuits.find(sorted(set(hashes.values())))
            permits = [
                decide(one, found.get(one_hash), settings_of(one_hash), now=now)
                for one, one_hash in ((one, hashes[one.pattern]) for one in wanted)
            ]
            return _with_waits(session, permits, found, settings_of, now)

        return read(self._store, do)

    def is_final(self, found: Iterable[PermitAnswer]) -> bool:
        """Whether the permits can be used as they are; otherwise call `secure` first."""
        return not any(self._is_open_to_change(one) for one in found)

    def _is_open_to_change(self, one: PermitAnswer) -> bool:
        if one.permit is Permit.HOLD:
            return one.queue_no is not None
        return one.permit is Permit.PROBE and is_alone(one, self.settings_of(one.hash))

    def secure(self, found: Sequence[PermitAnswer]) -> Work[list[PermitAnswer]]:
        """Hold the queues of requests that may not go, and reserve probes.

        Circuits may have changed since the permits were read, so the answers are computed again.
        """
        settings_of, now = self.breaker.in_force(), self._clock.now()
        hashes = {one.hash for one in found if one.permit is not Permit.GO}

        def do(session: Session) -> list[PermitAnswer]:
            known = session.circuits.lock(hashes)
            probed: dict[str, Circuit] = {}
            held: dict[str, list[int]] = {}
            final = []
            for one in found:
                if one.hash not in hashes:
                    final.append(one)
                    continue
                wanted = PermitRequest(one.pattern, one.queue_no, one.is_of_table)
                settings = settings_of(one.hash)
                permit = decide(wanted, known.get(one.hash), settings, now=now)
                if permit.permit is Permit.PROBE and is_alone(one, settings):
                    probed[one.hash] = known[one.hash] = circuits.probe(known[one.hash], now=now)
                if permit.permit is Permit.HOLD and permit.queue_no is not None:
                    held.setdefault(one.hash, []).append(permit.queue_no)
                final.append(permit)
            session.circuits.save(probed)
            transitions.hold(session, held, now=now)
            return _with_waits(session, final, known, settings_of, now)

        return write(self._store, do)

    def permits_of_jobs(self, routes: Iterable[str]) -> Steps[list[PermitAnswer] | None]:
        """Whether jobs of these routes may run now; None: no circuit is watched."""
        if not self.is_watching:
            return None
        wanted = [PermitRequest(route, is_of_table=False) for route in dict.fromkeys(routes)]
        found = yield from self.permits(wanted)
        return found if self.is_final(found) else (yield from self.secure(found))

    def report(self, reports: Sequence[OutcomeReport]) -> Work[None]:
        """Report outcomes, in one transaction.

        Outcomes of routes that are no longer in the table are ignored.
        """
        settings_of = self.breaker.in_force()
        reporting = Reporting(settings_of, now=self._clock.now())
        timed = (
            circuits.judge_duration(one, settings_of(one.permit_answer.hash)) for one in reports
        )
        known = [
            report
            for report in timed
            if not report.permit_answer.is_of_table
            or self._routes.of_hash(report.permit_answer.hash) is not None
            if reporting.counts(report)
        ]
        if not known:
            return read(self._store, lambda _: None)  # nothing to make durable
        return write(self._store, lambda session: reporting.report(session, known))

    # ---- reading

    def status(self, circuit_hash: str) -> Work[CircuitState]:
        """The state of a circuit; an unknown one is closed."""

        def do(session: Session) -> CircuitState:
            found = session.circuits.find([circuit_hash]).get(circuit_hash)
            return found.state if found else CircuitState.CLOSED

        return read(self._store, do)

    def all(self) -> Work[dict[str, CircuitView]]:
        """Circuits that have a reported outcome or were opened by an operator."""
        return read(self._store, lambda session: self._overview(session).circuits)

    def overview(self) -> Work[CircuitsOverview]:
        """The same, and the held queues of all circuits, including removed ones."""
        return read(self._store, self._overview)

    def view_of(self, route: str, found: CircuitsOverview) -> CircuitView:
        """The circuit of a route; one without any outcome is closed."""
        circuit_hash = circuits.circuit_hash(route)
        known = found.circuits.get(circuit_hash)
        return known or self._view(circuit_hash, Circuit(pattern=route), found.held, {})

    def find(self, circuit_hash: str) -> Work[CircuitView | None]:
        def do(session: Session) -> CircuitView | None:
            found = session.circuits.find([circuit_hash]).get(circuit_hash)
            if found is None:
                return None
            circuits = session.circuits
            return self._view(
                circuit_hash, found, circuits.held_counts(), circuits.awaiting_counts()
            )

        return read(self._store, do)

    def _overview(self, session: Session) -> CircuitsOverview:
        held, awaiting = session.circuits.held_counts(), session.circuits.awaiting_counts()
        views = {
            circuit_hash: self._view(circuit_hash, circuit, held, awaiting)
            for circuit_hash, circuit in session.circuits.all().items()
        }
        return CircuitsOverview(views, held, sum(awaiting.values()))

    def _view(
        self,
        circuit_hash: str,
        circuit: Circuit,
        held: Mapping[str, int],
        awaiting: Mapping[str, int],
    ) -> CircuitView:
        route = self._routes.of_hash(circuit_hash)
        metric_name = route.metric_name if route else None
        return CircuitView(
            circuit_hash,
            circuit,
            metric_name,
            held.get(circuit_hash, 0),
            awaiting.get(circuit_hash, 0),
        )

    # ---- by operators

    def close(self, circuit_hash: str) -> Work[None]:
        """Close it; its queues wait for their release.  An unknown circuit stays closed."""
        now = self._clock.now()

        def do(session: Session) -> None:
            found = session.circuits.lock([circuit_hash])
            transitions.close(session, found, by="operator", now=now)

        return write(self._store, do)

    def close_all(self) -> Work[int]:
        """Close those that are not closed; returns how many."""
        now = self._clock.now()

        def do(session: Session) -> int:
            found = session.circuits.lock_in(NOT_CLOSED)
            transitions.close(session, found, by="operator", now=now)
            return len(found)

        return write(self._store, do)

    def force_open(self, circuit_hash: str, *, pattern: str | None = None) -> Work[Circuit]:
        """Open it until an operator closes it.  `pattern`: of a circuit that is not stored yet."""
        now = self._clock.now()
        route = self._routes.of_hash(circuit_hash)
        if pattern is None and route is not None:
            pattern = route.pattern

        def do(session: Session) -> Circuit:
            if pattern is not None and circuits.circuit_hash(pattern) == circuit_hash:
                found = session.circuits.lock_or_add({circuit_hash: pattern})
            else:
                found = session.circuits.lock([circuit_hash])
            if circuit_hash not in found:
                raise CircuitNotFound(circuit_hash)
            opened = circuits.force_open(found[circuit_hash], now=now)
            transitions.save(session, found, {circuit_hash: opened}, by="operator", now=now)
            return opened

        return write(self._store, do)

    # ---- cluster duties; a node that fails leaves them to others

    def half_open_all(self, *, now: int) -> Work[TickResult]:
        """Half-open circuits that have been open long enough."""
        settings_of = self.breaker.in_force()
        every_ms = self.settings.open_to_half_open.interval_ms

        def do(session: Session, _: int) -> int:
            found = session.circuits.lock_in([CircuitState.OPEN])
            after = {
                circuit_hash: circuits.half_open(it, settings_of(circuit_hash), now=now)
                for circuit_hash, it in found.items()
            }
            changed = {
                circuit_hash: it
                for circuit_hash, it in after.items()
                if it is not found[circuit_hash]
            }
            transitions.save(session, found, changed, by="tick", now=now)
            return len(changed)

        return self._once(HALF_OPEN_DUTY, every_ms, do, now=now)

    def release_probes(self, *, now: int) -> Work[TickResult]:
        """Release the longest held queue of each half-open circuit as a probe.

        Its first message is tried at once, even during a back-off: one request per tick.  If it
        waited, queues released by several ticks could send their requests at the same instant.
        """

        def do(session: Session, _: int) -> int:
            found = session.circuits.lock_in([CircuitState.HALF_OPEN])
            return transitions.release(
                session, session.circuits.rotate(list(found), now=now), now=now
            )

        return self._once(PROBE_DUTY, self.settings.unlock_probes.interval_ms, do, now=now)

    def release_next(self, *, now: int) -> Work[TickResult]:
        """Release the next queues of closed circuits; the number may grow with every tick."""
        settings = self.settings

        def do(session: Session, tick: int) -> int:
            wanted = circuits.count_released(settings, tick=tick)
            taken = session.circuits.take_for_release(wanted)
            transitions.release(session, taken, now=now)
            if len(taken) < wanted:
                session.duties.restart(RELEASE_DUTY)
            return len(taken)

        return self._once(RELEASE_DUTY, settings.unlock_queues.interval_ms, do, now=now)

    def _once(self, name: str, every_ms: int, do: Do, *, now: int) -> Work[TickResult]:
        def once(session: Session) -> TickResult:
            tick = session.duties.take(name, for_ms=every_ms, now=now)
            if tick is None:
                return TickResult(session.duties.until(name) or now + every_ms, None)
            return TickResult(now + every_ms, do(session, tick))

        return write(self._store, once)


def _with_waits(
    session: Session,
    permits: list[PermitAnswer],
    found: Mapping[str, Circuit],
    settings_of: SettingsOf,
    now: int,
) -> list[PermitAnswer]:
    if not any(map(is_waiting, permits)):
        return permits
    tick_at = session.duties.until(HALF_OPEN_DUTY)
    return with_waits(permits, found, settings_of, next_tick_at=tick_at, now=now)
