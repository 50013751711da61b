"""Workers and facts in the JSON of the native API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.domain.worker import NewWorker, Worker, WorkerState
from penstock.edge.instants import to_text
from penstock.services.workers import HeldLease


class NewWorkerIn(msgspec.Struct, forbid_unknown_fields=True):
    name: str | None = None
    host: str | None = None
    pid: int | None = None
    queues: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    slots: int = 1
    labels: dict[str, str] = {}

    def about(self) -> NewWorker:
        return NewWorker(**msgspec.structs.asdict(self))


class LeaseOut(msgspec.Struct, omit_defaults=True):
    id: str
    queue: str
    attempts: int
    leased_until: str
    leased_at: str | None = None
    kind: str | None = None


class WorkerOut(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A worker; what it does not have is left out."""

    id: str
    state: WorkerState
    slots: int
    registered_at: str
    beat_at: str
    alive_until: str
    name: str | None = None
    host: str | None = None
    pid: int | None = None
    queues: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    ended_at: str | None = None
    holding: int | None = None
    leases: list[LeaseOut] | None = None


class RegisteredOut(WorkerOut, kw_only=True):
    """A worker, and how often it has to be heard."""

    valid_ms: int
    beat_ms: int


class WorkersOut(msgspec.Struct):
    workers: list[WorkerOut]
    next: str | None


def worker_out(
    worker: Worker, *, holding: int | None = None, leases: Sequence[HeldLease] | None = None
) -> WorkerOut:
    out = WorkerOut(**_told(worker), holding=holding)
    if leases is not None:
        out.holding, out.leases = len(leases), [_lease_out(lease) for lease in leases]
    return out


def registered_out(worker: Worker, *, valid_ms: int, beat_ms: int) -> RegisteredOut:
    return RegisteredOut(**_told(worker), valid_ms=valid_ms, beat_ms=beat_ms)


def _told(worker: Worker) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.structs.asdict(worker)
    for name in ("registered_at", "beat_at", "alive_until", "ended_at"):
        instant = getattr(worker, name)
        told[name] = None if instant is None else to_text(instant)
    return told


def _lease_out(lease: HeldLease) -> LeaseOut:
    m = lease.message
    leased_at = None if m.leased_at is None else to_text(m.leased_at)
    return LeaseOut(m.id, lease.queue, m.attempts, to_text(m.due_at), leased_at, m.kind)
