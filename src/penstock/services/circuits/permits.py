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
    OutcomeReport,
    Permit,
    PermitAnswer,
    RequestOutcome,
)
from penstock.domain.circuit.outcome_window import (
    Batch,
    OutcomeWindows,
    note_all,
    stored_request_id,
)
from penstock.domain.circuit.settings import BreakerSettings
from penstock.ports.store import Session
from penstock.services.circuits import transitions
from penstock.services.circuits.breaker import SettingsOf


class PermitRequest(msgspec.Struct, frozen=True):
    """Asks whether a request of this route, which may be the head of a queue, may be tried."""

    pattern: str
    queue_no: int | None = None
    is_of_table: bool = True


def decide(
    wanted: PermitRequest, circuit: Circuit | None, settings: BreakerSettings, *, now: int
) -> PermitAnswer:
    is_probed = circuit is not None and circuit.probe_until > now
    if not wanted.is_of_table:
        settings = circuits.of_jobs(settings)
    return answer(wanted, circuits.permit(circuit, settings, is_probed=is_probed), circuit)


def is_alone(one: PermitAnswer, settings: BreakerSettings) -> bool:
    """Whether it probes alone while its circuit is half-open.  Jobs always do."""
    return settings.single_probe or not one.is_of_table


def answer(wanted: PermitRequest, permit: Permit, circuit: Circuit | None) -> PermitAnswer:
    return PermitAnswer(
        permit=permit,
        pattern=wanted.pattern,
        hash=circuits.circuit_hash(wanted.pattern),
        generation=-1 if circuit is None else circuit.generation,
        queue_no=wanted.queue_no,
        is_of_table=wanted.is_of_table,
    )


def is_waiting(one: PermitAnswer) -> bool:
    """Whether it is a job without a go: no queue holds it back, so it gets a waiting time."""
    return not one.is_of_table and one.permit is not Permit.GO


def with_waits(
    found: Sequence[PermitAnswer],
    known: Mapping[str, Circuit],
    settings_of: SettingsOf,
    *,
    next_tick_at: int | None,
    now: int,
) -> list[PermitAnswer]:
    """`next_tick_at`: when open circuits become half-open."""

    def waiting(one: PermitAnswer) -> PermitAnswer:
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

    def _is_counted(self, circuit_hash: str) -> bool:
        return self._settings_of(circuit_hash).statistics_update_enabled

    def report(self, session: Session, reports: Sequence[OutcomeReport]) -> None:
        left: dict[str, list[OutcomeReport]] = {}
        for report in reports:
            if self.counts(report):
                left.setdefault(report.permit_answer.hash, []).append(report)
        if not left:
            return
        patterns = {
            circuit_hash: batch[0].permit_answer.pattern for circuit_hash, batch in left.items()
        }
        found = session.circuits.lock(patterns)
        new = {
            circuit_hash: pattern
            for circuit_hash, pattern in patterns.items()
            if circuit_hash not in found and self._is_counted(circuit_hash)
        }
        if new:
            found |= session.circuits.lock_or_add(new)
        left = {
            circuit_hash: batch for circuit_hash, batch in left.items() if circuit_hash in found
        }
        while left:
            parts = {
                circuit_hash: _up_to_decision(found[circuit_hash], batch)
                for circuit_hash, batch in left.items()
            }
            self._note(session, found, parts)
            self._conclude(session, found, parts)
            left = {
                circuit_hash: batch[len(parts[circuit_hash]) :]
                for circuit_hash, batch in left.items()
            }
            left = {circuit_hash: batch for circuit_hash, batch in left.items() if batch}

    def counts(self, report: OutcomeReport) -> bool:
        """Whether the report counts; a request that was not permitted has not tried anything."""
        if report.permit_answer.permit is Permit.HOLD:
            return False
        is_noted = report.outcome is not None and self._is_counted(report.permit_answer.hash)
        return is_noted or report.permit_answer.permit is Permit.PROBE

    def _note(
        self, session: Session, found: dict[str, Circuit], parts: dict[str, list[OutcomeReport]]
    ) -> None:
        counted = {
            circuit_hash: [r for r in part if r.outcome is not None]
            for circuit_hash, part in parts.items()
            if self._is_counted(circuit_hash)
        }
        batches = {
            circuit_hash: [
                (stored_request_id(r.request_id), r.outcome) for r in part if r.outcome is not None
            ]
            for circuit_hash, part in counted.items()
            if part
        }
        if not batches:
            return
        now, windows = self._now, self._windows(session, batches)
        after: dict[str, Circuit] = {}
        opened: dict[str, list[int]] = {}
        for circuit_hash, batch in batches.items():
            settings = self._settings_of(circuit_hash)
            after[circuit_hash], i = note_all(
                found[circuit_hash], windows[circuit_hash], batch, settings, now=now
            )
            queue_no = None if i is None else counted[circuit_hash][i].permit_answer.queue_no
            if queue_no is not None and settings.circuit_check_enabled:
                opened[circuit_hash] = [queue_no]
        session.circuits.save_windows(windows)
        transitions.save(session, found, after, by="statistics", now=now)
        transitions.hold(session, opened, now=now)
        found |= after

    def _windows(self, session: Session, batches: Mapping[str, Batch]) -> dict[str, OutcomeWindows]:
        """Circuits with the same window settings are read together; usually all have the same."""
        alike: dict[tuple[int, int], dict[str, Batch]] = {}
        for circuit_hash, batch in batches.items():
            settings = self._settings_of(circuit_hash)
            window = (settings.entries_max_age_ms, settings.max_queue_sample_count)
            alike.setdefault(window, {})[circuit_hash] = batch
        windows: dict[str, OutcomeWindows] = {}
        for (age_ms, most), some in alike.items():
            windows |= session.circuits.windows(some, since=self._now - age_ms, most=most)
        return windows

    def _conclude(
        self, session: Session, found: dict[str, Circuit], parts: dict[str, list[OutcomeReport]]
    ) -> None:
        """Apply the outcomes of probes; only the last report of each part can be decisive."""
        closing: dict[str, Circuit] = {}
        others: dict[str, Circuit] = {}
        for circuit_hash, part in parts.items():
            last, circuit = part[-1], found[circuit_hash]
            if not _is_valid(circuit, last):
                continue
            if last.outcome is None:
                others[circuit_hash] = circuits.free_probe(circuit)
            elif last.outcome is RequestOutcome.SUCCESS:
                closing[circuit_hash] = circuit
            else:
                others[circuit_hash] = circuits.conclude_probe(circuit, last.outcome, now=self._now)
        if others:
            transitions.save(session, found, others, by="probe", now=self._now)
            found |= others
        if closing:
            transitions.close(session, closing, by="probe", now=self._now)
            found |= {
                circuit_hash: circuits.close(circuit) for circuit_hash, circuit in closing.items()
            }


def _up_to_decision(circuit: Circuit, reports: list[OutcomeReport]) -> list[OutcomeReport]:
    for i, report in enumerate(reports):
        if _is_valid(circuit, report):
            return reports[: i + 1]
    return reports


def _is_valid(circuit: Circuit, report: OutcomeReport) -> bool:
    """A probe counts for the generation in which it was permitted, not for a later one."""
    is_now = report.permit_answer.generation == circuit.generation
    is_probe = report.permit_answer.permit is Permit.PROBE and not circuit.is_forced
    return is_probe and is_now and circuit.state is CircuitState.HALF_OPEN
