"""Move tasks over HTTP."""

from __future__ import annotations

import msgspec

from penstock.domain.access import api_key as access
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.errors import MoveNotRunning, MoveRunning, TargetNotFound
from penstock.domain.message.move_task import MoveTask
from penstock.domain.queue.queue import check_name
from penstock.edge.native import wire, wire_in
from penstock.edge.native.cursor import read_limit
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.services.moves import Moves

_move = msgspec.json.Decoder(wire_in.StartMoveIn)


class MoveApi:
    def __init__(self, moves: Moves) -> None:
        self._moves = moves

    def routes(self) -> list[Route]:
        of_queue, one = "/v1/queues/{queue}/moves", "/v1/moves/{move}"
        return [
            Route(
                method="POST",
                path=of_queue,
                handler=self.start,
                role=Role.OPERATE,
                name="startMove",
                summary="Move messages out of a queue in the background, at a limited rate.",
                takes=wire_in.StartMoveIn,
                example={"max_per_second": 50},
                gives=wire.MoveOut,
                status=201,
                refuses=(MoveRunning, TargetNotFound),
            ),
            Route(
                method="GET",
                path=of_queue,
                handler=self.of_queue,
                role=Role.READ,
                name="listMoves",
                summary="The latest moves out of a queue, newest first.",
                gives=wire.MovesOut,
                query=("limit",),
            ),
            Route(
                method="GET",
                path=one,
                handler=self.get,
                role=Role.READ,
                name="getMove",
                scope=Scope.NAMED,
                summary="One move, running or ended.",
                gives=wire.MoveOut,
            ),
            Route(
                method="POST",
                path=f"{one}/cancel",
                handler=self.cancel,
                role=Role.OPERATE,
                name="cancelMove",
                scope=Scope.NAMED,
                summary="Stop a running move; what was moved stays moved.",
                gives=wire.MoveOut,
                refuses=(MoveNotRunning,),
            ),
        ]

    async def start(self, request: Request, respond: Respond) -> Response:
        wanted = wire_in.decode(_move, request.body)
        if wanted.to is not None:
            access.allow(request.caller, Role.OPERATE, check_name(wanted.to))
        task = await self._moves.start(
            request.params["queue"], target=wanted.to, max_per_second=wanted.max_per_second
        )
        return json_response(wire.move_out(task), 201)

    async def of_queue(self, request: Request, respond: Respond) -> Response:
        limit = read_limit(request.query("limit").get("limit"))
        tasks = await self._moves.of_source(request.params["queue"], limit=limit)
        return json_response(wire.MovesOut([wire.move_out(task) for task in tasks]))

    async def get(self, request: Request, respond: Respond) -> Response:
        return json_response(wire.move_out(await self._allowed(request, Role.READ)))

    async def cancel(self, request: Request, respond: Respond) -> Response:
        task = await self._allowed(request, Role.OPERATE)
        return json_response(wire.move_out(await self._moves.cancel(task.task_id)))

    async def _allowed(self, request: Request, role: Role) -> MoveTask:
        """The move, if its queue is one of the caller's."""
        task = await self._moves.get(request.params["move"])
        access.allow(request.caller, role, task.source)
        return task
