"""Workers: they register, send beats and leave; operators list and drain them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta

from penstock.api.operation import (
    AnswerRecord,
    Cursor,
    DurationMs,
    Id,
    Instant,
    Limit,
    Next,
    Operation,
    QueryRecord,
    ToInstant,
    about,
    filtered,
    named,
)
from penstock.domain import worker as domain
from penstock.domain.access.api_key import Role
from penstock.domain.errors import WorkerGone, WorkerNotFound
from penstock.domain.message.lifecycle import Message
from penstock.domain.worker import NewWorker, WorkerState


class Lease(AnswerRecord, frozen=True, omit_defaults=True):
    """A message that a worker holds."""

    id: Annotated[Id, about("The message's id.")]
    queue: Annotated[str, about("The queue's name.")]
    attempts: Annotated[int, about("How many claims counted as attempts.")]
    leased_until: Annotated[Instant, about("When the lease expires.")]
    leased_at: Annotated[Instant | None, about("When it was claimed.")] = None
    kind: Annotated[str | None, about("The kind of the message.")] = None

    @classmethod
    def of(cls, message: Message, queue: str, instant: ToInstant) -> Self:
        until = instant(message.due_at)
        return cls.copy_of(message, instant, queue=queue, leased_until=until)


class Worker(AnswerRecord, frozen=True, kw_only=True, omit_defaults=True):
    """A worker; fields without a value are left out."""

    id: Annotated[Id, about("The worker's id.")]
    state: Annotated[WorkerState, about("Active, draining, left or lost.")]
    slots: Annotated[int, about("How many messages it handles at a time.")]
    registered_at: Annotated[Instant, about("When it registered.")]
    beat_at: Annotated[Instant, about("When its last beat arrived.")]
    alive_until: Annotated[Instant, about("When it counts as lost unless another beat arrives.")]
    name: Annotated[str | None, about("Its name, which is not necessarily unique.")] = None
    host: Annotated[str | None, about("The machine it runs on.")] = None
    pid: Annotated[int | None, about("The id of its process.")] = None
    queues: Annotated[tuple[str, ...], about("The queues it claims from; empty: any.")] = ()
    kinds: Annotated[tuple[str, ...], about("The kinds it handles; empty: all.")] = ()
    labels: Annotated[dict[str, str], about("Its labels.")] = msgspec.field(default_factory=dict)
    ended_at: Annotated[Instant | None, about("When it left or was lost.")] = None
    is_silent: Annotated[
        bool, about("True: two beats are missing, but it does not count as lost yet.")
    ] = False
    holding: Annotated[int | None, about("How many leases it holds.")] = None
    leases: Annotated[list[Lease] | None, about("The leases it holds. Absent in lists.")] = None

    @property
    def is_draining(self) -> bool:
        return self.state is WorkerState.DRAINING

    @classmethod
    def of(
        cls,
        worker: domain.Worker,
        instant: ToInstant,
        *,
        holding: int | None = None,
        leases: Sequence[Lease] | None = None,
        **more: Any,
    ) -> Self:
        return cls.copy_of(
            worker,
            instant,
            holding=holding if leases is None else len(leases),
            leases=None if leases is None else [*leases],
            **more,
        )


class Registered(Worker, frozen=True, kw_only=True):
    """A worker, and how often it has to send a beat."""

    valid_ms: Annotated[DurationMs, about("How long a worker counts as alive after its last beat.")]
    beat_ms: Annotated[DurationMs, about("How often it should send a beat.")]


class Workers(AnswerRecord, frozen=True):
    workers: Annotated[list[Worker], about("The workers, in the order of their registration.")]
    next: Next


class ListWorkers(QueryRecord):
    gone: Annotated[
        bool, Meta(description="Include workers that have left or were lost.", examples=[True])
    ] = False
    limit: Limit = 100
    cursor: Cursor = None


REGISTER = named.post(
    "registerWorker",
    "/v1/workers",
    "Register a worker. It claims with its id as `claimed_by`.",
    Registered,
    role=Role.CONSUME,
    request=NewWorker,
    example={"name": "mailer", "host": "node-1", "pid": 4711, "queues": ["mail"], "slots": 4},
    status=201,
)
LIST = filtered.get(
    "listWorkers",
    "/v1/workers",
    "List registered workers with the number of leases each holds.",
    Workers,
    query=ListWorkers,
)
GET = named.get(
    "getWorker",
    "/v1/workers/{worker}",
    "Retrieve a worker with its leases.",
    Worker,
    errors=(WorkerNotFound,),
)
ALIVE = named.post(
    "isWorkerAlive",
    "/v1/workers/{worker}/alive",
    "Send a beat. False means that the worker must register again.",
    bool,
    role=Role.CONSUME,
    is_idempotent=True,
)
BEAT = named.post(
    "beatWorker",
    "/v1/workers/{worker}/beat",
    "Send a beat. The response says whether the worker should drain.",
    Registered,
    role=Role.CONSUME,
    errors=(WorkerGone,),
    is_idempotent=True,
)
DRAIN = named.post(
    "drainWorker",
    "/v1/workers/{worker}/drain",
    "Ask a worker to finish its messages and to claim no more.",
    Worker,
    errors=(WorkerNotFound, WorkerGone),
    is_idempotent=True,
)
LEAVE: Operation[None] = named.delete(
    "removeWorker",
    "/v1/workers/{worker}",
    "Deregister a worker. Messages it still holds are released.",
    role=Role.CONSUME,
    status=204,
    errors=(WorkerNotFound,),
    is_idempotent=True,
)
