"""Workers."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from penstock.api import workers
from penstock.api.workers import Lease, ListWorkers, Registered, Worker
from penstock.domain import worker as domain
from penstock.domain.access.api_key import Caller, Role, allow, is_limited, sees
from penstock.domain.errors import Forbidden, WorkerGone
from penstock.domain.message.lease import Verb
from penstock.domain.worker import NewWorker
from penstock.operations.call import Call, Handlers
from penstock.ports.unit_of_work import Steps, Work
from penstock.services.workers import TaskLeases, WorkerService


class WorkerOperations:
    def __init__(self, service: WorkerService, task_leases: TaskLeases, *, beat_ms: int) -> None:
        self._workers = service
        self._task_leases = task_leases
        self._beat_ms = beat_ms

    def handlers(self) -> Handlers:
        return {
            workers.REGISTER: self.register,
            workers.LIST: self.page,
            workers.GET: self.get,
            workers.ALIVE: self.alive,
            workers.BEAT: self.beat,
            workers.DRAIN: self.drain,
            workers.LEAVE: self.leave,
        }

    def register(self, call: Call[NewWorker, None]) -> Work[Registered]:
        wanted = call.body
        if not wanted.queues and is_limited(call.caller):
            # A worker of Izenda's protocol names no queues: it only gets tasks.
            wanted = replace(wanted, queues=(self._task_leases.queue,))
        for queue in wanted.queues:
            allow(call.caller, Role.CONSUME, queue)
        return self._workers.register(wanted).map(lambda worker: self._registered(worker, call))

    def page(self, call: Call[None, ListWorkers]) -> Steps[workers.Workers]:
        query = call.query
        views = yield from self._workers.page(
            after=query.cursor or "", limit=query.limit, with_gone=query.gone
        )
        shown = [
            Worker.of(
                view.worker,
                call.instant,
                holding=view.holding,
                is_silent=self._is_silent(view.worker),
            )
            for view in views
            if all(sees(call.caller, queue) for queue in view.worker.queues)
        ]
        following = views[-1].worker.id if len(views) == query.limit else None
        return workers.Workers(workers=shown, next=following)

    def get(self, call: Call[None, None]) -> Steps[Worker]:
        worker = yield from self._workers.get(call.path["worker"])
        for queue in worker.queues:
            allow(call.caller, Role.READ, queue)
        leases = yield from self._workers.leases_of(worker)
        shown = [
            Lease.of(one.message, one.queue, call.instant)
            for one in leases
            if sees(call.caller, one.queue)
        ]
        is_silent = self._is_silent(worker)
        return Worker.of(worker, call.instant, leases=shown, is_silent=is_silent)

    def alive(self, call: Call[None, None]) -> Steps[bool]:
        return (yield from self._beat(call)) is not None

    def beat(self, call: Call[None, None]) -> Steps[Registered]:
        worker = yield from self._beat(call)
        if worker is None:
            raise WorkerGone(call.path["worker"][:80])
        return self._registered(worker, call)

    def drain(self, call: Call[None, None]) -> Steps[Worker]:
        worker = yield from self._workers.get(call.path["worker"])
        _allow(call.caller, Role.OPERATE, worker)
        drained = yield from self._workers.drain(worker.id)
        return Worker.of(drained, call.instant)

    def leave(self, call: Call[None, None]) -> Steps[None]:
        worker = yield from self._workers.get(call.path["worker"])
        _allow(call.caller, Role.CONSUME, worker)
        yield from self._workers.leave(worker.id)
        leases = yield from self._workers.leases_of(worker)
        if leases:
            yield self._workers.act_on([lease.message for lease in leases], Verb.RELEASE)

    def _beat(self, call: Call[None, None]) -> Steps[domain.Worker | None]:
        worker_id = call.path["worker"]
        if is_limited(call.caller):  # other keys may see every worker
            known = yield from self._workers.find(worker_id)
            if known is not None:
                _allow(call.caller, Role.CONSUME, known)
        return (yield from self._task_leases.beat(worker_id))

    def _is_silent(self, worker: domain.Worker) -> bool:
        return self._workers.is_silent(worker, beat_ms=self._beat_ms)

    def _registered(self, worker: domain.Worker, call: Call[Any, None]) -> Registered:
        valid_ms = self._workers.valid_ms
        return Registered.of(worker, call.instant, valid_ms=valid_ms, beat_ms=self._beat_ms)


def _allow(caller: Caller, role: Role, worker: domain.Worker) -> None:
    """Check access: a key for some queues covers only workers that name no other queues."""
    if not worker.queues and is_limited(caller):
        raise Forbidden("this key is for some queues only, and this worker serves all of them")
    for queue in worker.queues:
        allow(caller, role, queue)
