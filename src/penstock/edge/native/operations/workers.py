"""Workers over HTTP: they register, beat and leave; operators look at them and drain them."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.domain.access import api_key as access
from penstock.domain.access.api_key import Caller, Role, Scope
from penstock.domain.errors import Forbidden, InvalidRequest, WorkerGone, WorkerNotFound
from penstock.domain.message.lease import Verb
from penstock.domain.worker import Worker
from penstock.edge.izenda.task_leases import Holding
from penstock.edge.native import wire_in
from penstock.edge.native import wire_workers as wire
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.operations.cursor import read_limit
from penstock.services.workers import Workers

_about = msgspec.json.Decoder(wire.NewWorkerIn)
_EXAMPLE = {"name": "mailer", "host": "node-1", "pid": 4711, "queues": ["mail"], "slots": 4}


class WorkerApi:
    def __init__(self, workers: Workers, holding: Holding, *, beat_ms: int) -> None:
        self._workers = workers
        self._holding = holding
        self._beat_ms = beat_ms

    def routes(self) -> list[Route]:
        def route(
            method: str, path: str, handler: Any, role: Role, name: str, **more: Any
        ) -> Route:
            return Route(method=method, path=path, handler=handler, role=role, name=name, **more)

        everybody, one = "/v1/workers", "/v1/workers/{worker}"
        return [
            route(
                "POST",
                everybody,
                self.register,
                Role.CONSUME,
                "registerWorker",
                scope=Scope.NAMED,
                summary="Register a worker; its claims carry the id as `claimed_by`.",
                takes=wire.NewWorkerIn,
                example=_EXAMPLE,
                gives=wire.RegisteredOut,
                status=201,
            ),
            route(
                "GET",
                everybody,
                self.page,
                Role.READ,
                "listWorkers",
                scope=Scope.FILTERED,
                summary="The workers that are there, and how much each of them holds.",
                gives=wire.WorkersOut,
                query=("gone", "limit", "cursor"),
            ),
            route(
                "GET",
                one,
                self.get,
                Role.READ,
                "getWorker",
                scope=Scope.NAMED,
                summary="One worker, and what it holds.",
                gives=wire.WorkerOut,
                refuses=(WorkerNotFound,),
            ),
            route(
                "POST",
                f"{one}/alive",
                self.alive,
                Role.CONSUME,
                "isWorkerAlive",
                scope=Scope.NAMED,
                summary="A sign of life: true, or false for a worker that must register again.",
                gives=bool,
            ),
            route(
                "POST",
                f"{one}/beat",
                self.beat,
                Role.CONSUME,
                "beatWorker",
                scope=Scope.NAMED,
                summary="A sign of life that also tells whether the worker is to drain.",
                gives=wire.RegisteredOut,
                refuses=(WorkerGone,),
            ),
            route(
                "POST",
                f"{one}/drain",
                self.drain,
                Role.OPERATE,
                "drainWorker",
                scope=Scope.NAMED,
                summary="Have it finish what it holds and claim nothing more.",
                gives=wire.WorkerOut,
                refuses=(WorkerNotFound, WorkerGone),
            ),
            route(
                "DELETE",
                one,
                self.leave,
                Role.CONSUME,
                "removeWorker",
                scope=Scope.NAMED,
                summary="A worker leaves; what it still holds is given back.",
                status=204,
                refuses=(WorkerNotFound,),
            ),
        ]

    async def register(self, request: Request, respond: Respond) -> Response:
        about = wire_in.decode(_about, request.body).about()
        if not about.queues and "*" not in request.caller.queues:
            # Izenda's protocol names none: such a worker is for tasks, and for nothing else.
            about = msgspec.structs.replace(about, queues=(self._holding.queue,))
        for queue in about.queues:
            access.allow(request.caller, Role.CONSUME, queue)
        worker = await self._workers.register(about)
        return self._registered(worker, 201)

    async def page(self, request: Request, respond: Respond) -> Response:
        query = request.query("gone", "limit", "cursor")
        if query.get("gone", "false") not in ("true", "false"):
            raise InvalidRequest("gone is true or false")
        limit = read_limit(query.get("limit"))
        views = await self._workers.page(
            after=query.get("cursor", ""), limit=limit, with_gone=query.get("gone") == "true"
        )
        shown = [
            wire.worker_out(view.worker, holding=view.holding)
            for view in views
            if _sees(request.caller, view.worker)
        ]
        following = views[-1].worker.id if len(views) == limit else None
        return json_response(wire.WorkersOut(shown, following))

    async def get(self, request: Request, respond: Respond) -> Response:
        worker = await self._workers.get(request.params["worker"])
        for queue in worker.queues:
            access.allow(request.caller, Role.READ, queue)
        leases = await self._workers.leases_of(worker)
        seen = [lease for lease in leases if access.sees(request.caller, lease.queue)]
        return json_response(wire.worker_out(worker, leases=seen))

    async def alive(self, request: Request, respond: Respond) -> Response:
        return json_response(await self._beat(request) is not None)

    async def beat(self, request: Request, respond: Respond) -> Response:
        worker = await self._beat(request)
        if worker is None:
            raise WorkerGone(request.params["worker"][:80])
        return self._registered(worker)

    async def drain(self, request: Request, respond: Respond) -> Response:
        worker = await self._workers.get(request.params["worker"])
        _allow(request.caller, Role.OPERATE, worker)
        return json_response(wire.worker_out(await self._workers.drain(worker.id)))

    async def leave(self, request: Request, respond: Respond) -> Response:
        worker = await self._workers.get(request.params["worker"])
        _allow(request.caller, Role.CONSUME, worker)
        await self._workers.leave(worker.id)
        if held := await self._workers.leases_of(worker):
            await self._workers.act_on([lease.message for lease in held], Verb.RELEASE)
        return Response(204)

    async def _beat(self, request: Request) -> Worker | None:
        worker_id = request.params["worker"]
        if "*" not in request.caller.queues:  # otherwise there is nothing to look up
            known = await self._workers.find(worker_id)
            if known is not None:
                _allow(request.caller, Role.CONSUME, known)
        return await self._holding.beat(worker_id)

    def _registered(self, worker: Worker, status: int = 200) -> Response:
        told = wire.registered_out(worker, valid_ms=self._workers.valid_ms, beat_ms=self._beat_ms)
        return json_response(told, status)


def _sees(caller: Caller, worker: Worker) -> bool:
    """A worker that names no queues is for all of them, those of the caller included."""
    return all(access.sees(caller, queue) for queue in worker.queues)


def _allow(caller: Caller, role: Role, worker: Worker) -> None:
    """A key for some queues is for the workers that have named these and no others."""
    if not worker.queues and access.is_limited(caller):
        raise Forbidden("this key is for some queues only, and this worker for all")
    for queue in worker.queues:
        access.allow(caller, role, queue)
