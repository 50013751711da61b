"""Izenda's contract: a task has a jobKind, a jobEntityId and jobData, and ends with an outcome."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec

from penstock.api.operation import about, delete, get, post
from penstock.domain.access.api_key import Role
from penstock.domain.errors import (
    LeaseLost,
    MessageNotFound,
    QueueFull,
    TooManyWaiting,
    WorkerGone,
    WrongState,
)
from penstock.domain.message.draft import Draft
from penstock.domain.message.history import Ending
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import QUARANTINED, TIMED_OUT, Content, Message, State
from penstock.edge.instants import to_text

FAILED = "failed"  # the reason stored when a worker reports the outcome Failed

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


TaskId = Annotated[str, about("The id of the task.")]
TaskStatus = Annotated[Status, about("The status of the task.")]
JobKind = Annotated[str | None, about("The kind of the task.")]
EntityId = Annotated[str | None, about("What the task is about.")]
JobData = Annotated[str | None, about("The input of the task, as text.")]
WorkerId = Annotated[str, about("The id of the worker that runs the task.")]


class NewTaskIn(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    job_kind: Annotated[str, about("The kind of the task; workers name the kinds they handle.")]
    job_entity_id: EntityId = None
    job_data: JobData = None

    def draft(self, *, timeout_ms: int | None) -> Draft:
        return Draft(
            body=msgspec.json.encode(self.job_data).decode(),
            kind=self.job_kind,
            entity_id=self.job_entity_id,
            timeout_ms=timeout_ms,
        )


class NextTaskIn(msgspec.Struct, forbid_unknown_fields=True):
    kinds: Annotated[
        tuple[str, ...] | None,
        about("Only tasks of these kinds. Defaults to the kinds the worker registered with."),
    ] = None
    wait_ms: Annotated[int, about("How long to wait for a task, in milliseconds.")] = 0


class TaskOutcomeIn(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    outcome: Annotated[Outcome, about("How the task ended.")]
    worker_id: WorkerId


class TaskProgressIn(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    progress: Annotated[Any, about("The progress of the task: any JSON value.")]
    worker_id: WorkerId


class EnqueuedOut(msgspec.Struct):
    id: TaskId


class TaskOut(msgspec.Struct, rename="camel"):
    id: TaskId
    job_kind: JobKind
    job_entity_id: EntityId
    job_data: JobData


class TaskEndOut(msgspec.Struct):
    id: TaskId
    status: TaskStatus


class TaskStatusOut(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """A task and its status; fields without a value are left out."""

    id: TaskId
    status: TaskStatus
    attempts: Annotated[int, about("How many times a worker was given the task.")]
    enqueued_at: Annotated[str, about("When the task was enqueued.")]
    job_kind: JobKind = None
    job_entity_id: EntityId = None
    job_data: JobData = None
    worker_id: Annotated[str | None, about("The id of the worker that was last given it.")] = None
    started_at: Annotated[str | None, about("When that worker was given it.")] = None
    finished_at: Annotated[str | None, about("When the task ended.")] = None
    progress: Annotated[
        msgspec.Raw | None, about("The last progress its worker reported: any JSON value.")
    ] = None
    error: Annotated[str | None, about("The error of the last failed attempt.")] = None


_PATH = "/v1/tasks/{task}"

ENQUEUE = post(
    "enqueueTask",
    "/v1/tasks",
    "Enqueue a task. The response is sent once the task is on disk.",
    EnqueuedOut,
    role=Role.PRODUCE,
    request=NewTaskIn,
    example={
        "jobKind": "SendReport",
        "jobEntityId": "0b6f3a52-8d1e-4c7e-9a55-2f9f6c1d7e10",
        "jobData": "weekly",
    },
    status=201,
    errors=(QueueFull,),
)
STATUS = get(
    "getTask",
    _PATH,
    "Retrieve a task with its status, its progress and its worker.",
    TaskStatusOut,
    errors=(MessageNotFound,),
)
CANCEL = delete(
    "cancelTask",
    _PATH,
    "Cancel a queued or running task; its worker can no longer report an outcome.",
    TaskEndOut,
    errors=(MessageNotFound, WrongState),
)
DEQUEUE = post(
    "dequeueTask",
    "/v1/workers/{worker}/dequeue",
    "Dequeue the oldest task that the worker may take, or null.",
    TaskOut | None,
    role=Role.CONSUME,
    request=NextTaskIn,
    example={"kinds": ["SendReport"], "wait_ms": 1_000},
    errors=(WorkerGone, TooManyWaiting),
)
OUTCOME = post(
    "setTaskOutcome",
    f"{_PATH}/outcome",
    "Report the outcome of a task, as the worker that runs it.",
    TaskEndOut,
    role=Role.CONSUME,
    request=TaskOutcomeIn,
    example={"outcome": "Succeeded", "workerId": "$WORKER"},
    errors=(MessageNotFound, WorkerGone, LeaseLost),
)
PROGRESS = post(
    "setTaskProgress",
    f"{_PATH}/progress",
    "Report the progress of a task, as the worker that runs it.",
    TaskEndOut,
    role=Role.CONSUME,
    request=TaskProgressIn,
    example={"progress": {"percent": 40}, "workerId": "$WORKER"},
    errors=(MessageNotFound, WorkerGone, LeaseLost),
)


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
    """The task's data; a body that another API sent is returned as JSON text."""
    if content.body == "null":
        return None
    return _text.decode(content.body) if content.body.startswith('"') else content.body
