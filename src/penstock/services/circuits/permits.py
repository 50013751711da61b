"""Permits of requests, by the state and settings of their circuits; and reports of outcomes.

A batch of reports is applied in a few statements.  The result is the same as if they had been
reported one by one: a circuit may open in the middle of a batch, and a probe may close it there,
which clears its outcomes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from penstock.domain.circuit import circuit as circuits
from penstock.domain.circuit.circuit import (
    Circuit,
    CircuitState,
    Permit,
    Permitted,
    Reported,
    RequestOutcome,
    circuit_hash,
)
from penstock.domain.circuit.outcome_window import Batch, OutcomeWindows, note_all, sample_id
from penstock.domain.circuit.settings import BreakerSettings
from penstock.ports.store import Session
from penstock.services.circuits import transitions
from penstock.services.circuits.breaker import SettingsOf


class PermitRequest(msgspec.Struct, frozen=True):
    """Asks whether a request of this route, which may be the head of a queue, may be tried."""

    pattern: str
    queue_no: int | None = None
    is_of_table: bool = True


def permitted(
    wanted: PermitRequest, circuit: Circuit | None, settings: BreakerSettings, *, now: int
) -> Permitted:
    is_probed = circuit is not None and circuit.probe_until > now
    if not wanted.is_of_table:
        settings = circuits.of_jobs(settings)
    return answer(wanted, circuits.permit(circuit, settings, is_probed=is_probed), circuit)


def is_alone(one: Permitted, settings: BreakerSettings) -> bool:
    """Whether it probes alone while its circuit is half-open.  Jobs always do."""
    return settings.single_probe or not one.is_of_table


def answer(wanted: PermitRequest, permit: Permit, circuit: Circuit | None) -> Permitted:
    return Permitted(
        permit=permit,
        pattern=wanted.pattern,
        hash=circuit_hash(wanted.pattern),
        generation=-1 if circuit is None else circuit.generation,
        queue_no=wanted.queue_no,
        is_of_table=wanted.is_of_table,
    )


def is_waiting(one: Permitted) -> bool:
    """Whether it is a job without a go: no queue holds it back, so it gets a waiting time."""
    return not one.is_of_table and one.permit is not Permit.GO


def with_waits(
    found: Sequence[Permitted],
    known: Mapping[str, Circuit],
    settings_of: SettingsOf,
    *,
    next_tick_at: int | None,
    now: int,
) -> list[Permitted]:
    """`next_tick_at`: when open circuits become half-open."""

    def waiting(one: Permitted) -> Permitted:
        if not is_waiting(one):
            return one
        settings = settings_of(one.hash)
        wait_ms = circuits.wait_ms(known[one.hash], settings, next_tick_at=next_tick_at, now=now)
        retry_ms = circuits.retry_ms(settings) if one.permit is Permit.PROBE else 0
        return replace(one, wait_ms=wait_ms, retry_ms=retry_ms)

    return [waiting(one) for one in found]


class Reporting:
    def __init__(self, settings_of: SettingsOf, *, now: int) -> None:
        self._settings_of = settings_of
        self._now = now

    def _is_counted(self, one: str) -> bool:
        return self._settings_of(one).statistics_update_enabled

    def report(self, session: Session, reports: Sequence[Reported]) -> None:
        left: dict[str, list[Reported]] = {}
        for report in reports:
            if self.counts(report):
                left.setdefault(report.permitted.hash, []).append(report)
        if not left:
            return
        patterns = {one: batch[0].permitted.pattern for one, batch in left.items()}
        found = session.circuits.to_change(patterns)
        new = {
            one: pattern
            for one, pattern in patterns.items()
            if one not in found and self._is_counted(one)
        }
        if new:
            found |= session.circuits.to_note(new)
        left = {one: batch for one, batch in left.items() if one in found}
        while left:
            parts = {one: _up_to_decision(found[one], batch) for one, batch in left.items()}
            self._note(session, found, parts)
            self._conclude(session, found, parts)
            left = {one: batch[len(parts[one]) :] for one, batch in left.items()}
            left = {one: batch for one, batch in left.items() if batch}

    def counts(self, report: Reported) -> bool:
        """Whether the report counts; a request that was not permitted has not tried anything."""
        if report.permitted.permit is Permit.HOLD:
            return False
        is_noted = report.outcome is not None and self._is_counted(report.permitted.hash)
        return is_noted or report.permitted.permit is Permit.PROBE

    def _note(
        self, session: Session, found: dict[str, Circuit], parts: dict[str, list[Reported]]
    ) -> None:
        counted = {
            one: [r for r in part if r.outcome is not None]
            for one, part in parts.items()
            if self._is_counted(one)
        }
        batches = {
            one: [(sample_id(r.request_id), r.outcome) for r in part if r.outcome is not None]
            for one, part in counted.items()
            if part
        }
        if not batches:
            return
        now, lines = self._now, self._lines(session, batches)
        after: dict[str, Circuit] = {}
        opened: dict[str, list[int]] = {}
        for one, batch in batches.items():
            settings = self._settings_of(one)
            after[one], i = note_all(found[one], lines[one], batch, settings, now=now)
            queue_no = None if i is None else counted[one][i].permitted.queue_no
            if queue_no is not None and settings.circuit_check_enabled:
                opened[one] = [queue_no]
        session.circuits.save_windows(lines)
        transitions.keep(session, found, after, by="statistics", now=now)
        transitions.hold(session, opened, now=now)
        found |= after

    def _lines(self, session: Session, batches: Mapping[str, Batch]) -> dict[str, OutcomeWindows]:
        """Circuits with the same window settings are read together; usually all have the same."""
        alike: dict[tuple[int, int], dict[str, Batch]] = {}
        for one, batch in batches.items():
            settings = self._settings_of(one)
            window = (settings.entries_max_age_ms, settings.max_queue_sample_count)
            alike.setdefault(window, {})[one] = batch
        lines: dict[str, OutcomeWindows] = {}
        for (age_ms, most), some in alike.items():
            lines |= session.circuits.windows(some, since=self._now - age_ms, most=most)
        return lines

    def _conclude(
        self, session: Session, found: dict[str, Circuit], parts: dict[str, list[Reported]]
    ) -> None:
        """Apply the outcomes of probes; only the last report of each part can be decisive."""
        closing: dict[str, Circuit] = {}
        others: dict[str, Circuit] = {}
        for one, part in parts.items():
            last, circuit = part[-1], found[one]
            if not _is_valid(circuit, last):
                continue
            if last.outcome is None:
                others[one] = circuits.free_probe(circuit)
            elif last.outcome is RequestOutcome.SUCCESS:
                closing[one] = circuit
            else:
                others[one] = circuits.conclude_probe(circuit, last.outcome, now=self._now)
        if others:
            transitions.keep(session, found, others, by="probe", now=self._now)
            found |= others
        if closing:
            transitions.close(session, closing, by="probe", now=self._now)
            found |= {one: circuits.close(circuit) for one, circuit in closing.items()}


def _up_to_decision(circuit: Circuit, reports: list[Reported]) -> list[Reported]:
    for i, report in enumerate(reports):
        if _is_valid(circuit, report):
            return reports[: i + 1]
    return reports


def _is_valid(circuit: Circuit, report: Reported) -> bool:
    """A probe counts for the generation in which it was permitted, not for a later one."""
    is_now = report.permitted.generation == circuit.generation
    is_probe = report.permitted.permit is Permit.PROBE and not circuit.is_forced
    return is_probe and is_now and circuit.state is CircuitState.HALF_OPEN
