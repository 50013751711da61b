"""The demo's facts: workers register and are lost, a circuit opens, a fleet grows."""

from __future__ import annotations

import msgspec

from penstock.domain import worker as workers
from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND
from penstock.pipeline.demo.columns import WORKER_IDS
from penstock.pipeline.demo.scenario import BROKEN_QUEUE, OUTAGE_FROM, OUTAGE_MS, QUEUES

_SCALING = "scaling_decision"
_PROBE_EVERY = 2 * MINUTE
_FLEET = "billing-workers"
_RELEASE = "2.4.0"

Row = dict[str, object]


def facts(midnight: int, *, is_first: bool, is_outage: bool) -> list[Row]:
    """The facts of a day in order of time, without numbers and without those of flows."""
    found = [*_scaling(midnight)]
    if is_first:
        found += [_worker(workers.REGISTERED, n, midnight + n * SECOND) for n in range(24)]
    if is_outage:
        found += _outage(midnight + OUTAGE_FROM)
        found += [_worker(workers.LOST, n, midnight + 15 * HOUR + n * SECOND) for n in (3, 7)]
    return sorted(found, key=lambda row: str(row["at"]))


def _outage(began_at: int) -> list[Row]:
    pattern = QUEUES[BROKEN_QUEUE].route or ""
    at, over_at = began_at + 90 * SECOND, began_at + OUTAGE_MS
    found = [_circuit("circuit_opened", at, pattern, was="closed", generation=1)]
    generation = 1
    while at < over_at:
        at += _PROBE_EVERY
        generation += 2
        found.append(
            _circuit("circuit_half_opened", at, pattern, was="open", generation=generation - 1)
        )
        kind = "circuit_reopened" if at + SECOND < over_at else "circuit_closed"
        found.append(_circuit(kind, at + SECOND, pattern, was="half_open", generation=generation))
    return found


def _circuit(kind: str, at: int, pattern: str, *, was: str, generation: int) -> Row:
    data = {"pattern": pattern, "was": was, "fail_ratio": 97, "generation": generation}
    by = "statistics" if kind == "circuit_opened" else "delivery"
    return _fact(kind, at, circuit_hash(pattern), {**data, "by": by})


def _worker(kind: str, number: int, at: int) -> Row:
    data: Row = {"name": f"worker-{number}", "host": f"host-{number % 4}", "pid": 1000 + number}
    if kind == workers.LOST:
        data["beat_at"] = at - 90 * SECOND
    else:
        data |= {"queues": [queue.name for queue in QUEUES], "labels": {"release": _RELEASE}}
    return _fact(kind, at, WORKER_IDS[number], data)


def _scaling(midnight: int) -> list[Row]:
    """A fleet that follows the rush hours."""
    steps = ((7, 2, 4), (9, 4, 8), (12, 8, 5), (17, 5, 7), (21, 7, 3), (23, 3, 2))
    found = []
    for hour, before, wanted in steps:
        data = {"acted": True, "dry_run": False, "by": "demo", "change": wanted - before}
        more = {"wanted": wanted, "reason": "backlog", "level": 0}
        found.append(_fact(_SCALING, midnight + hour * HOUR, _FLEET, {**data, **more}))
    return found


def _fact(kind: str, at: int, subject: str, data: Row) -> Row:
    assert at % DAY >= 0
    return {"at": at, "kind": kind, "subject": subject, "data": msgspec.json.encode(data).decode()}
