"""Circuits as the pure rules say, one outcome after the other: the oracle of the service."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.circuit import circuit as circuits
from penstock.domain.circuit.circuit import (
    Circuit,
    CircuitState,
    HeldQueue,
    OutcomeReport,
    Permit,
    PermitAnswer,
    RequestOutcome,
    circuit_hash,
)
from penstock.domain.circuit.settings import BreakerSettings
from tests.domain.circuit import oracle
from tests.domain.circuit.oracle import CircuitOutcomes

OPEN, HALF, CLOSED = CircuitState.OPEN, CircuitState.HALF_OPEN, CircuitState.CLOSED


class Model:
    """Queues go by their numbers here, and their names sort as these do."""

    def __init__(
        self, settings: BreakerSettings, names: dict[int, str], patterns: dict[str, str]
    ) -> None:
        self.settings = settings
        self.own: dict[str, BreakerSettings] = {}  # of circuits that override some
        self.patterns = patterns
        self.names = names
        self.circuits: dict[str, Circuit] = {}
        self.outcomes: dict[str, CircuitOutcomes] = {}
        self.held: dict[str, dict[int, int]] = {}
        self.queued: list[int] = []
        self.is_held: set[int] = set()
        self.ticks = 0

    def of(self, one: str) -> BreakerSettings:
        return self.own.get(one, self.settings)

    def permit(self, pattern: str, *, now: int) -> Permit:
        one = circuit_hash(pattern)
        found = self.circuits.get(one)
        is_probed = found is not None and found.probe_until > now
        return circuits.permit(found, self.of(one), is_probed=is_probed)

    def secure(self, pattern: str, queue_no: int, *, now: int) -> Permit:
        one, permit = circuit_hash(pattern), self.permit(pattern, now=now)
        if permit is Permit.PROBE and self.of(one).single_probe:
            self.circuits[one] = circuits.probe(self.circuits[one], now=now)
        if permit is Permit.HOLD:
            self._hold(one, queue_no, now)
        return permit

    def report(self, reports: Sequence[OutcomeReport], *, now: int) -> None:
        for report in reports:
            permitted = report.permit_answer
            if permitted.permit is Permit.HOLD:
                continue
            if report.outcome is not None and self.of(permitted.hash).statistics_update_enabled:
                self._note(permitted, report.request_id, report.outcome, now)
            found = self.circuits.get(permitted.hash)
            is_probe = permitted.permit is Permit.PROBE and found is not None
            if not is_probe or found is None or found.generation != permitted.generation:
                continue
            if report.outcome is None:
                self.circuits[permitted.hash] = circuits.free_probe(found)
            elif circuits.conclude_probe(found, report.outcome, now=now).state is CLOSED:
                self.close(permitted.hash)
            else:
                self.circuits[permitted.hash] = circuits.conclude_probe(
                    found, report.outcome, now=now
                )

    def close(self, one: str) -> None:
        if one in self.circuits:
            self.queued += self._in_order(one)
            self.held[one] = {}
            self.outcomes[one] = CircuitOutcomes()
            self.circuits[one] = circuits.close(self.circuits[one])

    def force_open(self, one: str, *, now: int) -> None:
        before = self.circuits.get(one, Circuit(pattern=self.patterns[one]))
        self.circuits[one] = circuits.force_open(before, now=now)

    def close_all(self) -> None:
        queued = [
            HeldQueue(self.names[no], at)
            for one, found in self.circuits.items()
            if found.state is not CLOSED
            for no, at in self.held.get(one, {}).items()
        ]
        before, by_name = list(self.queued), {name: no for no, name in self.names.items()}
        for one, found in list(self.circuits.items()):
            if found.state is not CLOSED:
                self.close(one)
        self.queued = before + [by_name[name] for name in oracle.in_order(queued)]

    def half_open(self, *, now: int) -> None:
        for one, found in self.circuits.items():
            self.circuits[one] = circuits.half_open(found, self.of(one), now=now)

    def release_probes(self, *, now: int) -> None:
        by_name = {name: no for no, name in self.names.items()}
        for one, found in self.circuits.items():
            if found.state is HALF:
                held = [HeldQueue(self.names[no], at) for no, at in self.held.get(one, {}).items()]
                first, _ = oracle.next_probe(held, now=now)
                if first is not None:
                    self.held[one][by_name[first.queue]] = now
                    self.is_held.discard(by_name[first.queue])

    def release_next(self) -> None:
        count = circuits.count_released(self.settings, tick=self.ticks)
        taken, self.queued = self.queued[:count], self.queued[count:]
        self.is_held -= set(taken)
        self.ticks = 0 if len(taken) < count else self.ticks + 1

    def unhold(self, queue_no: int) -> None:
        for held in self.held.values():
            held.pop(queue_no, None)
        self.queued = [no for no in self.queued if no != queue_no]
        self.is_held.discard(queue_no)

    def release_idle(self) -> None:
        by_name = {name: no for no, name in self.names.items()}
        unchecked = [one for one in self.held if not self.of(one).circuit_check_enabled]
        held = [
            HeldQueue(self.names[no], at) for one in unchecked for no, at in self.held[one].items()
        ]
        self.queued += [by_name[name] for name in oracle.in_order(held)]
        self.held |= {one: {} for one in unchecked}
        if not self.settings.unlock_queues.enabled:
            self.is_held -= set(self.queued)
            self.queued = []

    def _note(
        self, permitted: PermitAnswer, request_id: str, outcome: RequestOutcome, now: int
    ) -> None:
        one = permitted.hash
        before = self.circuits.get(one, Circuit(pattern=permitted.pattern))
        noted = oracle.note(self.outcomes.get(one, CircuitOutcomes()), request_id, outcome, now=now)
        settings = self.of(one)
        found = oracle.tally(noted, settings, now=now)
        after = self.circuits[one] = circuits.judge(before, found, settings, now=now)
        self.outcomes[one] = oracle.trim(noted, settings)
        is_opened = before.state is CLOSED and after.state is OPEN
        if is_opened and permitted.queue_no is not None and settings.circuit_check_enabled:
            self._hold(one, permitted.queue_no, now)

    def _hold(self, one: str, queue_no: int, now: int) -> None:
        self.held.setdefault(one, {})[queue_no] = now
        self.is_held.add(queue_no)

    def _in_order(self, one: str) -> list[int]:
        by_name = {name: no for no, name in self.names.items()}
        held = [HeldQueue(self.names[no], at) for no, at in self.held.get(one, {}).items()]
        return [by_name[name] for name in oracle.in_order(held)]
