"""Queues over HTTP."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.domain.access import api_key as access
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.errors import InvalidRequest, QueueExists, QueueNotEmpty
from penstock.domain.queue.queue import QueueSettings, check_name
from penstock.edge.chunks import purge_all
from penstock.edge.native import wire, wire_in
from penstock.edge.native.cursor import read_limit
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.services.queues import CHUNK, Queues, QueueView

_FILTERS = ("prefix", "contains", "dead_letter_queue", "limit", "cursor")
_settings = msgspec.json.Decoder(QueueSettings)
_some_settings = msgspec.json.Decoder(dict[str, Any])
_redrive = msgspec.json.Decoder(wire_in.RedriveIn)


class Cancelled(msgspec.Struct):
    cancelled: int


class Redriven(msgspec.Struct):
    redriven: int


class QueueApi:
    def __init__(self, queues: Queues) -> None:
        self._queues = queues

    def routes(self) -> list[Route]:
        one = "/v1/queues/{queue}"

        def operate(method: str, path: str, handler: Any, summary: str, **more: Any) -> Route:
            role = more.pop("role", Role.OPERATE)
            return Route(
                method=method, path=path, handler=handler, summary=summary, role=role, **more
            )

        return [
            operate(
                "GET",
                "/v1/queues",
                self.page,
                "The queues by name, with their counts.",
                name="listQueues",
                scope=Scope.FILTERED,
                role=Role.READ,
                gives=wire.QueuesOut,
                query=_FILTERS,
            ),
            operate(
                "PUT",
                one,
                self.put,
                "Make a queue (201), or give it these settings (200).",
                name="putQueue",
                takes=QueueSettings,
                example={"lease_ms": 60_000, "max_attempts": 3},
                gives=wire.QueueOut,
                status=201,
                also=(200,),
                refuses=(QueueExists,),  # when two make it at the same instant
            ),
            operate(
                "PATCH",
                one,
                self.patch,
                "Change some settings and leave the others.",
                name="changeQueue",
                takes=QueueSettings,
                example={"max_attempts": None},
                gives=wire.QueueOut,
            ),
            operate(
                "GET",
                one,
                self.get,
                "One queue with its counts.",
                name="getQueue",
                role=Role.READ,
                gives=wire.QueueOut,
            ),
            operate(
                "DELETE",
                one,
                self.remove,
                "Remove a queue; with force=true also what it holds.",
                name="removeQueue",
                status=204,
                query=("force",),
                refuses=(QueueNotEmpty,),
            ),
            operate(
                "POST",
                f"{one}/pause",
                self._pausing(True),
                "Stop claims; sends go on.",
                name="pauseQueue",
                gives=wire.QueueOut,
            ),
            operate(
                "POST",
                f"{one}/resume",
                self._pausing(False),
                "Let claims go on; a circuit may still hold the queue (see unholdQueue).",
                name="resumeQueue",
                gives=wire.QueueOut,
            ),
            operate(
                "POST",
                f"{one}/unhold",
                self.unhold,
                "End the hold of a circuit on the queue; a pause stays.",
                name="unholdQueue",
                gives=wire.QueueOut,
            ),
            operate(
                "POST",
                f"{one}/purge",
                self.purge,
                "Cancel everything in the queue; leases on it are lost.",
                name="purgeQueue",
                gives=Cancelled,
            ),
            operate(
                "POST",
                f"{one}/redrive",
                self.redrive,
                "Bring dead messages back to the queues they died in, or to another.",
                name="redriveQueue",
                takes=wire_in.RedriveIn,
                example={"limit": 100},
                gives=Redriven,
            ),
        ]

    async def page(self, request: Request, respond: Respond) -> Response:
        query = request.query(*_FILTERS)
        limit = read_limit(query.get("limit"))
        after = query.get("cursor", "")
        views: list[QueueView] = []
        # Queues that the caller may not see do not count for the page.
        while len(views) < limit:
            page = await self._queues.page(
                prefix=query.get("prefix", ""),
                after=after,
                limit=limit,
                dead_letter_queue=query.get("dead_letter_queue"),
                contains=query.get("contains", ""),
            )
            views += [view for view in page if access.sees(request.caller, view.queue.name)]
            if len(page) < limit:
                break
            after = page[-1].queue.name
        views = views[:limit]
        following = views[-1].queue.name if len(views) == limit else None
        return json_response(wire.QueuesOut([wire.queue_out(view) for view in views], following))

    async def put(self, request: Request, respond: Respond) -> Response:
        settings = wire_in.decode(_settings, request.body)
        check_letters(request, settings.dead_letter_queue)
        only_new = request.headers.get(b"if-none-match") == b"*"
        put = await self._queues.put(request.params["queue"], settings, only_new=only_new)
        return json_response(wire.queue_out(put.view), 201 if put.is_new else 200)

    async def patch(self, request: Request, respond: Respond) -> Response:
        changes = wire_in.decode(_some_settings, request.body)
        check_letters(request, changes.get("dead_letter_queue"))
        return json_response(
            wire.queue_out(await self._queues.patch(request.params["queue"], changes))
        )

    async def get(self, request: Request, respond: Respond) -> Response:
        return json_response(wire.queue_out(await self._queues.get(request.params["queue"])))

    async def remove(self, request: Request, respond: Respond) -> Response:
        force = request.query("force").get("force", "false")
        if force not in ("true", "false"):
            raise InvalidRequest("force is true or false")
        if force == "true":
            await purge_all(self._queues, request.params["queue"])
        await self._queues.remove(request.params["queue"], force=force == "true")
        return Response(204)

    def _pausing(self, is_paused: bool) -> Any:
        async def handle(request: Request, respond: Respond) -> Response:
            view = await self._queues.pause(request.params["queue"], is_paused=is_paused)
            out = wire.queue_out(view)
            if not is_paused and view.queue.held_by is not None:
                # Claims do not go on, so a plain 200 would mislead.
                out.note = (
                    f"circuit {view.queue.held_by} holds the queue, whether paused or not; "
                    f"POST /v1/queues/{view.queue.name}/unhold ends the hold"
                )
            return json_response(out)

        return handle

    async def unhold(self, request: Request, respond: Respond) -> Response:
        return json_response(wire.queue_out(await self._queues.unhold(request.params["queue"])))

    async def purge(self, request: Request, respond: Respond) -> Response:
        return json_response(Cancelled(await purge_all(self._queues, request.params["queue"])))

    async def redrive(self, request: Request, respond: Respond) -> Response:
        wanted = wire_in.decode(_redrive, request.body)
        if wanted.limit is not None and wanted.limit < 1:
            raise InvalidRequest("limit must be at least 1")
        if wanted.to is not None:
            access.allow(request.caller, Role.OPERATE, check_name(wanted.to))
        name, total = request.params["queue"], 0
        # At most what is there now: messages that die again meanwhile wait for the next time.
        view = await self._queues.get(name)
        most = view.counts.dead + view.counts.ready + view.counts.waiting
        left = most if wanted.limit is None else min(most, wanted.limit)
        while left > 0:
            done = await self._queues.redrive_some(name, to=wanted.to, limit=min(left, CHUNK))
            if not done:
                break
            total, left = total + done, left - done
        return json_response(Redriven(total))


def check_letters(request: Request, queue: Any) -> None:
    """Dead letters are sent, in a way: only whoever may operate the queue may point them there."""
    if isinstance(queue, str):
        access.allow(request.caller, Role.OPERATE, queue)
