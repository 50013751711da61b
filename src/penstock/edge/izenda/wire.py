"""Izenda's words: a task has a jobKind, a jobEntityId and jobData, and ends with an outcome."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from penstock.domain.message.draft import Draft
from penstock.domain.message.history import Ending
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import QUARANTINED, TIMED_OUT, Content, Message, State
from penstock.edge.instants import to_text

FAILED = "failed"  # why a task was given up, where its worker says so

_text = msgspec.json.Decoder(str)


class Outcome(StrEnum):
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    TIMED_OUT = "TimedOut"


class Status(StrEnum):
    QUEUED = "queued"
    PROCESSING = "processing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timedOut"
    QUARANTINED = "quarantined"
    CANCELLED = "cancelled"


ACT_OF = {
    Outcome.SUCCEEDED: Verb.COMPLETE,
    Outcome.FAILED: Verb.BURY,
    Outcome.TIMED_OUT: Verb.TIME_OUT,
}
STATUS_OF = {
    Outcome.SUCCEEDED: Status.SUCCEEDED,
    Outcome.FAILED: Status.FAILED,
    Outcome.TIMED_OUT: Status.TIMED_OUT,
}
_DEATHS = {TIMED_OUT: Status.TIMED_OUT, QUARANTINED: Status.QUARANTINED}
_STATES = {
    State.WAITING: Status.QUEUED,
    State.READY: Status.QUEUED,
    State.LEASED: Status.PROCESSING,
    State.DONE: Status.SUCCEEDED,
    State.CANCELLED: Status.CANCELLED,
}


class NewTaskIn(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    job_kind: str
    job_entity_id: str | None = None
    job_data: str | None = None

    def draft(self, *, timeout_ms: int | None) -> Draft:
        return Draft(
            body=msgspec.json.encode(self.job_data).decode(),
            kind=self.job_kind,
            entity_id=self.job_entity_id,
            timeout_ms=timeout_ms,
        )


class NextTaskIn(msgspec.Struct, forbid_unknown_fields=True):
    kinds: tuple[str, ...] | None = None
    wait_ms: int = 0


class TaskOutcomeIn(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    outcome: Outcome
    worker_id: str


class TaskProgressIn(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    progress: Any
    worker_id: str


class EnqueuedOut(msgspec.Struct):
    id: str


class TaskOut(msgspec.Struct, rename="camel"):
    id: str
    job_kind: str | None
    job_entity_id: str | None
    job_data: str | None


class TaskEndOut(msgspec.Struct):
    id: str
    status: Status


class TaskStatusOut(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """A task and how far it is; what it does not have is left out."""

    id: str
    status: Status
    attempts: int
    enqueued_at: str
    job_kind: str | None = None
    job_entity_id: str | None = None
    job_data: str | None = None
    worker_id: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    progress: msgspec.Raw | None = None
    error: str | None = None


def task_out(message: Message, content: Content) -> TaskOut:
    return TaskOut(message.id, message.kind, message.entity_id, _data(content))


def status_out(message: Message | Ending, content: Content | None) -> TaskStatusOut:
    m = message
    is_held = isinstance(m, Message) and m.state is State.LEASED
    out = TaskStatusOut(
        id=m.id,
        status=_status(m),
        attempts=m.attempts,
        enqueued_at=to_text(m.sent_at),
        job_kind=m.kind,
        job_entity_id=m.entity_id,
        job_data=None if content is None else _data(content),
        error=m.last_error,
    )
    if isinstance(m, Ending):
        out.finished_at = to_text(m.finished_at)
    elif m.progress is not None:
        out.progress = msgspec.Raw(m.progress.encode())
    if is_held or isinstance(m, Ending):
        out.worker_id = m.leased_by
        out.started_at = None if m.leased_at is None else to_text(m.leased_at)
    return out


def _status(m: Message | Ending) -> Status:
    state = m.outcome if isinstance(m, Ending) else m.state
    if state is State.DEAD or (isinstance(m, Message) and m.dead_from is not None):
        return _DEATHS.get(m.reason or "", Status.FAILED)
    return _STATES[state]


def _data(content: Content) -> str | None:
    """What was sent by other ways than Izenda's may be any JSON: then it is given as such."""
    if content.body == "null":
        return None
    return _text.decode(content.body) if content.body.startswith('"') else content.body
