"""Izenda's tasks on an ordinary queue; see docs/external-workers.md.

`/v1/workers` and the alive ping belong to the native API (operations/workers.py): they are the same
for every worker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from penstock.api.operation import Operation
from penstock.domain.errors import (
    InvalidRequest,
    LeaseLost,
    MessageNotFound,
    PenstockError,
    WorkerGone,
    WrongState,
)
from penstock.domain.limits import Limits
from penstock.domain.message.history import Ending
from penstock.domain.message.lease import Lease, LeaseAct, Verb
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.queue.queue import Queue
from penstock.domain.worker import Worker
from penstock.edge.izenda import wire
from penstock.edge.native.bind import route_of
from penstock.edge.server.request import Request, Respond, Response, decode, json_response
from penstock.edge.server.router import HttpRoute
from penstock.ports.clock import Clock
from penstock.ports.store import Claimed
from penstock.runtime.waiting_claims import ClaimWaiter
from penstock.services.messages import MessageService, MessageView
from penstock.services.queues import ProtocolQueue
from penstock.services.workers import TaskLeases, WorkerService

_new_task = msgspec.json.Decoder(wire.NewTaskIn)
_dequeue = msgspec.json.Decoder(wire.NextTaskIn)
_outcome = msgspec.json.Decoder(wire.TaskOutcomeIn)
_progress = msgspec.json.Decoder(wire.TaskProgressIn)


class TaskApi:
    def __init__(
        self,
        messages: MessageService,
        workers: WorkerService,
        waiting: ClaimWaiter,
        queue: ProtocolQueue,
        task_leases: TaskLeases,
        clock: Clock,
        limits: Limits,
        *,
        timeout_ms: int | None,
    ) -> None:
        self._messages = messages
        self._workers = workers
        self._waiting = waiting
        self._queue = queue
        self._task_leases = task_leases
        self._clock = clock
        self._limits = limits
        self._timeout_ms = timeout_ms

    def routes(self) -> list[HttpRoute]:
        return [
            self._route(wire.ENQUEUE, self.enqueue),
            self._route(wire.STATUS, self.status),
            self._route(wire.CANCEL, self.cancel),
            self._route(wire.DEQUEUE, self.dequeue),
            self._route(wire.OUTCOME, self.outcome),
            self._route(wire.PROGRESS, self.progress),
        ]

    def _route(
        self, operation: Operation[Any], do: Callable[[Request], Awaitable[Response]]
    ) -> HttpRoute:
        async def handle(request: Request, respond: Respond) -> Response:
            return await do(request)

        return route_of(operation, handle, queue=self._queue.name)

    async def enqueue(self, request: Request) -> Response:
        wanted = decode(_new_task, request.body)
        sent = await self._queue.send(wanted.draft(timeout_ms=self._timeout_ms))
        return json_response(wire.EnqueuedOut(sent.id), 201)

    async def dequeue(self, request: Request) -> Response:
        wanted = decode(_dequeue, request.body)
        if not 0 <= wanted.wait_ms <= self._limits.max_wait_ms:
            raise InvalidRequest(f"wait_ms must be from 0 to {self._limits.max_wait_ms}")
        worker = await self._workers.alive(request.params["worker"])
        if worker.is_draining:
            return json_response(None)
        kinds = wanted.kinds or worker.kinds or None

        async def do(queue: Queue) -> Response:
            now = self._clock.now()
            claimed = await self._waiting.claim(
                queue,
                # Do not give a task to a worker that no longer counts as alive.
                wait_ms=min(wanted.wait_ms, max(0, worker.alive_until - now)),
                lease_ms=self._task_leases.lease_ms(worker, now=now),
                claimed_by=worker.id,
                kinds=kinds,
            )
            if not claimed.messages:
                return json_response(None)
            if wanted.wait_ms:
                await self._refuse_gone(worker, claimed)
            return json_response(wire.task_out(*claimed.messages[0]))

        return await self._queue.use(do)

    async def _refuse_gone(self, worker: Worker, claimed: Claimed) -> None:
        """Release the task and raise WorkerGone if the worker left while it waited."""
        try:
            await self._workers.alive(worker.id)
        except WorkerGone:
            await self._messages.release([message for message, _ in claimed.messages])
            raise

    async def outcome(self, request: Request) -> Response:
        given = decode(_outcome, request.body)
        message, _ = await self._find_leased_task(request, given.worker_id)
        reason = wire.FAILED if given.outcome is wire.Outcome.FAILED else None
        act = self._messages.plan(Lease.of(message), wire.ACT_OF[given.outcome], text=reason)
        await self._act(act)
        return json_response(wire.TaskEndOut(message.id, wire.STATUS_OF[given.outcome]))

    async def progress(self, request: Request) -> Response:
        given = decode(_progress, request.body)
        message, lease_ms = await self._find_leased_task(request, given.worker_id)
        progress = msgspec.json.encode(given.progress).decode()
        act = self._messages.plan(
            Lease.of(message), Verb.EXTEND, delay_ms=lease_ms, progress=progress
        )
        await self._act(act)
        return json_response(wire.TaskEndOut(message.id, wire.Status.PROCESSING))

    async def status(self, request: Request) -> Response:
        view = await self._task(request.params["task"])
        return json_response(wire.status_out(view.message, view.content))

    async def cancel(self, request: Request) -> Response:
        view = await self._task(request.params["task"])
        if isinstance(view.message, Ending):
            status = wire.status_out(view.message, None).status
            raise WrongState(f"task {view.message.id} has ended: {status}")
        # Includes a task in progress; its worker then gets lease_lost.
        message = await self._messages.cancel(view.message.id, reason=None, is_running_ok=True)
        return json_response(wire.TaskEndOut(message.id, wire.Status.CANCELLED))

    async def _find_leased_task(self, request: Request, worker_id: str) -> tuple[Message, int]:
        """The task and its lease time; raises unless the worker is alive and holds the lease."""
        worker = await self._workers.alive(worker_id)
        view = await self._task(request.params["task"])
        message = view.message
        if (
            not isinstance(message, Message)
            or view.queue != self._queue.name
            or message.state is not State.LEASED
            or message.leased_by != worker.id
        ):
            raise LeaseLost(view.message.id)
        return message, self._task_leases.lease_ms(worker, now=self._clock.now())

    async def _task(self, task_id: str) -> MessageView:
        """A task, live, ended or in a dead-letter queue; messages of other queues are not tasks."""
        view = await self._messages.get(task_id)
        if self._queue.name not in (view.queue, view.dead_from):
            raise MessageNotFound(task_id)
        return view

    async def _act(self, act: LeaseAct) -> None:
        """Apply an act; raises LeaseLost if another worker has since claimed the task."""
        [answer] = await self._messages.act([act])
        if isinstance(answer, PenstockError):
            raise answer
