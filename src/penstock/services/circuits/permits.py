"""Decides on the permit of a request, by the state and settings of its circuit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from penstock.domain.circuit import circuit as circuits
from penstock.domain.circuit.circuit import Circuit, Permit, Permitted, circuit_hash
from penstock.domain.circuit.settings import BreakerSettings
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
