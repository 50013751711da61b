"""Changes circuits inside a transaction: saves them, adds facts, holds or releases queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.domain.circuit import circuit as circuits
from penstock.domain.circuit.circuit import Circuit, CircuitState
from penstock.ports.store import Session

_KINDS = {
    CircuitState.OPEN: "circuit_opened",
    CircuitState.HALF_OPEN: "circuit_half_opened",
    CircuitState.CLOSED: "circuit_closed",
}


def save(
    session: Session,
    before: Mapping[str, Circuit],
    after: Mapping[str, Circuit],
    *,
    by: str,
    now: int,
) -> None:
    """Save changed circuits; `by`: the cause, such as "statistics" or "operator"."""
    session.circuits.save(after)
    for circuit_hash, circuit in after.items():
        if circuit.generation != before[circuit_hash].generation:
            _add_fact(session, circuit_hash, before[circuit_hash], circuit, by=by, now=now)


def close(session: Session, found: Mapping[str, Circuit], *, by: str, now: int) -> None:
    """The caller has locked them.  Closing a closed circuit clears its outcomes."""
    session.circuits.queue_for_release_and_forget(list(found))
    after = {circuit_hash: circuits.close(circuit) for circuit_hash, circuit in found.items()}
    save(session, found, after, by=by, now=now)


def close_and_remove(session: Session, patterns: Mapping[str, str], *, now: int) -> None:
    """Their routes are gone: close them and release their queues."""
    found = session.circuits.lock(patterns)
    session.circuits.queue_for_release_and_forget(list(found))
    session.circuits.remove(list(found))
    for circuit_hash, circuit in found.items():
        data = {"pattern": circuit.pattern, "was": circuit.state, "by": "rules"}
        session.facts.add("circuit_removed", circuit_hash, at=now, data=data)


def hold(session: Session, held: Mapping[str, Sequence[int]], *, now: int) -> None:
    """Hold queues, given by circuit; the caller has locked the circuits."""
    if not held:
        return
    session.queues.lock_holds([queue_no for nos in held.values() for queue_no in nos])
    for circuit_hash in sorted(held):
        session.circuits.hold(circuit_hash, held[circuit_hash], now=now)
        session.queues.hold(held[circuit_hash], by=circuit_hash)


def release(session: Session, queue_nos: Sequence[int], *, now: int) -> int:
    """Unhold queues and make their first messages due; returns how many queues changed.

    gateleen, too, dispatches a queue when it unlocks it, whatever its retry interval.
    """
    unheld = session.queues.unhold(queue_nos)
    tried = session.deliveries.end_backoff(queue_nos, now=now)
    return len({*unheld, *tried})


def unhold(session: Session, queue_nos: Sequence[int], *, now: int) -> set[int]:
    """Unhold at once and remove the queues from all circuits; returns those that were held.

    Circuits are locked before queues, as everywhere.  A circuit that starts to hold a queue in
    between keeps its record of it; the only cost is a probe that finds the queue unheld.
    """
    holders = session.circuits.lock(session.circuits.holders(queue_nos))
    session.circuits.drop_holds(list(holders), queue_nos)
    unheld = session.queues.unhold(queue_nos)
    session.deliveries.end_backoff(unheld, now=now)
    return set(unheld)


def add_unheld_fact(
    session: Session, circuit_hash: str, data: Mapping[str, object], *, now: int
) -> None:
    """`circuit_hash`: the circuit that held the queues; it may be gone."""
    session.facts.add(
        "circuit_queues_unheld", circuit_hash, at=now, data={**data, "by": "operator"}
    )


def _add_fact(
    session: Session, circuit_hash: str, before: Circuit, after: Circuit, *, by: str, now: int
) -> None:
    kind = _KINDS[after.state]
    if after.state is CircuitState.CLOSED and before.state is CircuitState.CLOSED:
        return  # only its outcomes were cleared
    if after.state is CircuitState.OPEN and before.state is CircuitState.HALF_OPEN:
        kind = "circuit_reopened"
    data = {
        "pattern": after.pattern,
        "was": before.state,
        "fail_ratio": before.fail_ratio if after.state is CircuitState.CLOSED else after.fail_ratio,
        "generation": after.generation,
        "by": by,
    }
    session.facts.add(kind, circuit_hash, at=now, data=data)
