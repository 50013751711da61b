"""Recurring work over HTTP."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

import msgspec

from penstock.domain.access import api_key as access
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.errors import QueueFull, QueueNotFound, ScheduleNotFound
from penstock.domain.queue.queue import check_name
from penstock.domain.schedule.schedule import Rhythm, Schedule
from penstock.edge.instants import to_text
from penstock.edge.native import wire_in
from penstock.edge.native.wire_recurring import (
    InstantsOut,
    NewRecurringIn,
    PreviewIn,
    RecurringOut,
    RecurringPageOut,
    RetiredOut,
    RetireIn,
    RunOut,
    recurring_out,
)
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.operations.cursor import read_limit
from penstock.services.recurring import MAX_PREVIEW, Recurring

_recurring = msgspec.json.Decoder(NewRecurringIn)
_preview = msgspec.json.Decoder(PreviewIn)
_retire = msgspec.json.Decoder(RetireIn)


class RecurringApi:
    def __init__(self, recurring: Recurring) -> None:
        self._recurring = recurring

    def routes(self) -> list[Route]:
        every, one = "/v1/recurring", "/v1/recurring/{schedule}"
        read = partial(Route, method="GET", role=Role.READ)
        operate = partial(Route, method="POST", role=Role.OPERATE)
        return [
            read(
                path=every,
                handler=self.page,
                name="listRecurring",
                scope=Scope.FILTERED,
                summary="Recurring work, by name.",
                gives=RecurringPageOut,
                query=("limit", "cursor"),
            ),
            operate(
                path=f"{every}/preview",
                role=Role.READ,
                handler=self.preview_any,
                name="previewRhythm",
                scope=Scope.NONE,
                summary="The next instants of a rhythm, before it is used.",
                takes=PreviewIn,
                example={"cron": "30 2 * * *", "zone": "Europe/Berlin", "count": 3},
                gives=InstantsOut,
            ),
            operate(
                path=f"{every}/retire",
                handler=self.retire,
                name="retireRecurring",
                scope=Scope.FILTERED,
                summary="Remove what an application declared before and does not declare now.",
                takes=RetireIn,
                example={"owner": "shop.jobs", "declared": ["nightly_report"]},
                gives=RetiredOut,
            ),
            operate(
                method="PUT",
                path=one,
                handler=self.put,
                name="putRecurring",
                scope=Scope.NAMED,
                summary="Make recurring work, or change it; the same again changes nothing.",
                takes=NewRecurringIn,
                example={"queue": "mail", "cron": "30 2 * * *", "body": {"report": "nightly"}},
                gives=RecurringOut,
                refuses=(QueueNotFound,),
            ),
            read(
                path=one,
                handler=self.get,
                name="getRecurring",
                scope=Scope.NAMED,
                summary="Recurring work with its next and its last firing.",
                gives=RecurringOut,
            ),
            operate(
                method="DELETE",
                path=one,
                handler=self.remove,
                name="removeRecurring",
                scope=Scope.NAMED,
                summary="No more firings; what was sent stays.",
                status=204,
            ),
            read(
                path=f"{one}/preview",
                handler=self.preview,
                name="previewRecurring",
                scope=Scope.NAMED,
                summary="The next firings.",
                gives=InstantsOut,
                query=("count",),
            ),
            operate(
                path=f"{one}/pause",
                handler=self.pause,
                name="pauseRecurring",
                scope=Scope.NAMED,
                summary="Hold firings back.",
                gives=RecurringOut,
            ),
            operate(
                path=f"{one}/resume",
                handler=self.resume,
                name="resumeRecurring",
                scope=Scope.NAMED,
                summary="Let firings go on; those of the pause are not caught up.",
                gives=RecurringOut,
            ),
            operate(
                path=f"{one}/run",
                handler=self.run,
                name="runRecurring",
                scope=Scope.NAMED,
                summary="Send it once now, besides its firings.",
                gives=RunOut,
                status=201,
                refuses=(QueueFull, QueueNotFound),
            ),
        ]

    async def page(self, request: Request, respond: Respond) -> Response:
        query = request.query("limit", "cursor")
        limit, after = read_limit(query.get("limit")), query.get("cursor", "")
        found: list[Schedule] = []
        # What the caller may not see does not count for the page.
        while len(found) < limit:
            page = await self._recurring.page(after=after, limit=limit)
            found += [s for s in page if access.sees(request.caller, s.template.queue)]
            if len(page) < limit:
                break
            after = page[-1].name
        found = found[:limit]
        following = found[-1].name if len(found) == limit else None
        return json_response(RecurringPageOut([recurring_out(s) for s in found], following))

    async def put(self, request: Request, respond: Respond) -> Response:
        wanted = wire_in.decode(_recurring, request.body)
        access.allow(request.caller, Role.OPERATE, check_name(wanted.queue))
        name = request.params["schedule"]
        with suppress(ScheduleNotFound):  # whose it is now must be the caller's too
            await self._allowed(request, Role.OPERATE)
        schedule = await self._recurring.declare(
            name,
            wanted.rhythm(),
            wanted.template(),
            catch_up=wanted.catch_up,
            overlap=wanted.overlap,
            owner=wanted.owner,
        )
        return json_response(recurring_out(schedule))

    async def retire(self, request: Request, respond: Respond) -> Response:
        wanted = wire_in.decode(_retire, request.body)

        def may(schedule: Schedule) -> bool:
            return access.sees(request.caller, schedule.template.queue)

        retired = await self._recurring.dropped(wanted.owner, wanted.declared, may=may)
        if retired:
            retired = await self._recurring.retire(wanted.owner, wanted.declared, may=may)
        return json_response(RetiredOut(retired))

    async def get(self, request: Request, respond: Respond) -> Response:
        return json_response(recurring_out(await self._allowed(request, Role.READ)))

    async def remove(self, request: Request, respond: Respond) -> Response:
        schedule = await self._allowed(request, Role.OPERATE)
        await self._recurring.remove(schedule.name)
        return Response(204)

    async def pause(self, request: Request, respond: Respond) -> Response:
        schedule = await self._allowed(request, Role.OPERATE)
        return json_response(recurring_out(await self._recurring.pause(schedule.name)))

    async def resume(self, request: Request, respond: Respond) -> Response:
        schedule = await self._allowed(request, Role.OPERATE)
        return json_response(recurring_out(await self._recurring.resume(schedule.name)))

    async def run(self, request: Request, respond: Respond) -> Response:
        schedule = await self._allowed(request, Role.OPERATE)
        return json_response(RunOut(await self._recurring.run_now(schedule.name)), 201)

    async def preview(self, request: Request, respond: Respond) -> Response:
        count = request.query("count").get("count")
        schedule = await self._allowed(request, Role.READ)
        wanted = read_limit(count, default=10, most=MAX_PREVIEW, name="count")
        return await self._previewed(schedule.rhythm, wanted)

    async def preview_any(self, request: Request, respond: Respond) -> Response:
        wanted = wire_in.decode(_preview, request.body)
        return await self._previewed(wanted.rhythm(), wanted.count)

    async def _previewed(self, rhythm: Rhythm, count: int) -> Response:
        # A thousand firings that are years apart take half a second to find.
        instants = await asyncio.to_thread(self._recurring.preview, rhythm, count=count)
        return json_response(InstantsOut([to_text(instant) for instant in instants]))

    async def _allowed(self, request: Request, role: Role) -> Schedule:
        """The schedule, if its queue is one of the caller's."""
        schedule = await self._recurring.get(request.params["schedule"])
        access.allow(request.caller, role, schedule.template.queue)
        return schedule
