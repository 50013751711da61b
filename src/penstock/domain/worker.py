"""Workers: processes that claim, and how long they count as alive after a beat.

    ACTIVE ──── drain ───▶ DRAINING      asked to finish its work and claim nothing more
       │                      │
       ├──────── leave ───────┼─────▶ LEFT    it has unregistered
       └── alive_until has ───┴─────▶ LOST    it has been silent for too long
           passed

Pure: time comes in as a value, the changed worker comes out.  A worker is alive while
`now < alive_until`; one that beats too late must register again.  It is identified by the id
assigned at registration, never by its name: two workers may share a name or a host, and one that
counted as lost may return beside its successor.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec.structs import asdict, replace

from penstock.domain.datetimes import moment_of
from penstock.domain.described import about
from penstock.domain.errors import InvalidRequest, WorkerGone, WrongState
from penstock.domain.limits import MINUTE, NUL, SECOND, Limits, check_range
from penstock.domain.message.draft import is_label
from penstock.domain.queue.queue import check_name

VALID_MS = 3 * MINUTE  # how long a worker counts as alive after its last beat
BEAT_MS = 15 * SECOND

MAX_QUEUES = 1_000
MAX_KINDS = 100  # as many as one claim may ask for
MAX_SLOTS = 100_000
MAX_LABELS = 50

# Kinds of facts.
REGISTERED = "worker_registered"
DRAINED = "worker_drained"
LEFT = "worker_left"
LOST = "worker_lost"


class WorkerState(StrEnum):
    ACTIVE = "active"
    DRAINING = "draining"
    LEFT = "left"
    LOST = "lost"


PRESENT = frozenset({WorkerState.ACTIVE, WorkerState.DRAINING})


class NewWorker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a worker reports about itself when it registers."""

    name: Annotated[str | None, about("Its name, which need not be unique.")] = None
    host: Annotated[str | None, about("The machine it runs on.")] = None
    pid: Annotated[int | None, about("The id of its process.")] = None
    queues: Annotated[tuple[str, ...], about("The queues it claims from; empty: any.")] = ()
    kinds: Annotated[tuple[str, ...], about("The kinds it handles; empty: all.")] = ()
    slots: Annotated[int, about("How many messages it handles at a time.")] = 1
    labels: Annotated[dict[str, str], about("Its labels.")] = {}


class Worker(msgspec.Struct, frozen=True):
    """Fields are in column order."""

    id: str
    state: WorkerState
    name: str | None
    host: str | None
    pid: int | None
    queues: tuple[str, ...]
    kinds: tuple[str, ...]
    slots: int
    labels: dict[str, str]
    registered_at: int
    beat_at: int
    alive_until: int
    ended_at: int | None = None

    @property
    def is_draining(self) -> bool:
        return self.state is WorkerState.DRAINING


def is_alive(worker: Worker, *, now: int) -> bool:
    return worker.state in PRESENT and now < worker.alive_until


def is_silent(worker: Worker, *, now: int, beat_ms: int) -> bool:
    """Whether two beats are missing, the second by half of its interval."""
    return is_alive(worker, now=now) and now - worker.beat_at > beat_ms * 5 // 2


def register(about: NewWorker, *, worker_id: str, now: int, valid_ms: int) -> Worker:
    return Worker(
        id=worker_id,
        state=WorkerState.ACTIVE,
        **asdict(about),
        registered_at=now,
        beat_at=now,
        alive_until=now + valid_ms,
    )


def beat(worker: Worker, *, now: int, valid_ms: int) -> Worker:
    """Prolong its validity; raises WorkerGone if the beat comes too late."""
    return replace(_alive(worker, now), beat_at=now, alive_until=now + valid_ms)


def drain(worker: Worker, *, now: int) -> Worker:
    return replace(_alive(worker, now), state=WorkerState.DRAINING)


def leave(worker: Worker, *, now: int) -> Worker:
    """Unregister; a worker that is already gone stays as it is."""
    if worker.state not in PRESENT:
        return worker
    return replace(worker, state=WorkerState.LEFT, ended_at=now)


def lose(worker: Worker, *, now: int) -> Worker:
    if worker.state not in PRESENT or now < worker.alive_until:
        raise WrongState(f"worker {worker.id} has not been lost")
    return replace(worker, state=WorkerState.LOST, ended_at=now)


def describe_lost(worker: Worker) -> str:
    """Describe a lost worker, for operators who look at the messages it held."""
    named = f"worker {worker.name or worker.id}"
    known = [f"id {worker.id}"] if worker.name else []
    if worker.host is not None:
        known.append(f"host {worker.host}")
    if worker.pid is not None:
        known.append(f"pid {worker.pid}")
    where = f" ({', '.join(known)})" if known else ""
    heard = moment_of(worker.beat_at)
    at = heard.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f"{named}{where} was lost; its last beat came at {at}"


def check_about(about: NewWorker, limits: Limits) -> NewWorker:
    """Return it, or raise InvalidRequest."""
    for text in (about.name, about.host, *about.kinds):
        if text is not None and not is_label(text, limits):
            raise InvalidRequest(
                f"name, host and kinds have 1 to {limits.max_label_chars} characters, "
                "none of them NUL"
            )
    for text in (about.name, about.host):  # both appear in logs
        if text is not None and not text.isprintable():
            raise InvalidRequest("name and host must have printable characters only")
    for queue in about.queues:
        check_name(queue)
    if len(about.queues) > MAX_QUEUES or len(about.kinds) > MAX_KINDS:
        raise InvalidRequest(f"a worker names at most {MAX_QUEUES} queues and {MAX_KINDS} kinds")
    check_range("slots", about.slots, 1, MAX_SLOTS)
    if about.pid is not None and not 0 <= about.pid < 2**31:
        raise InvalidRequest("pid must be a process id")
    _check_labels(about.labels, limits)
    return about


def _check_labels(labels: dict[str, str], limits: Limits) -> None:
    if len(labels) > MAX_LABELS:
        raise InvalidRequest(f"a worker has at most {MAX_LABELS} labels")
    for name, text in labels.items():
        if not is_label(name, limits) or len(text) > limits.max_label_chars or NUL in text:
            most = limits.max_label_chars
            raise InvalidRequest(f"labels have up to {most} characters, none of them NUL")


def _alive(worker: Worker, now: int) -> Worker:
    if not is_alive(worker, now=now):
        raise WorkerGone(worker.id)
    return worker
