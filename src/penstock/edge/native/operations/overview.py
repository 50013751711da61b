"""What operators watch, over HTTP: news once a second, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from penstock.domain.access import api_key as access
from penstock.domain.access.api_key import Caller, Role, Scope
from penstock.domain.datetimes import read_instant
from penstock.domain.errors import TooManyWaiting
from penstock.domain.limits import DAY
from penstock.edge.live import LiveFeed
from penstock.edge.native.wire_overview import (
    GraphOut,
    ProblemsOut,
    damage_out,
    graph_out,
    hanging_out,
    live_out,
    problem_out,
    transaction_out,
)
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.edge.server.stream import EVENTS
from penstock.operations.cursor import read_limit
from penstock.services.graphs import Graphs
from penstock.services.overview import Look, Watch
from penstock.services.routes import Routes
from penstock.supervision.health import Health

MOST_EVENTS = 100_000
_SPAN = ("from", "to", "step_ms")

_encode = msgspec.json.Encoder().encode


class WatchingApi:
    def __init__(
        self,
        watch: Watch,
        graphs: Graphs,
        routes: Routes,
        *,
        most_listeners: int,
        is_let_in: Callable[[Caller], bool],
        health: Health | None = None,
    ) -> None:
        self._watch = watch
        self._routes = routes
        self._graphs = graphs
        self._feed = LiveFeed(
            watch, _rendered, most=most_listeners, is_let_in=is_let_in, health=health
        )

    def routes(self) -> list[Route]:
        return [
            Route(
                method="GET",
                path="/v1/live",
                handler=self.live,
                role=Role.READ,
                name="watchLive",
                scope=Scope.FILTERED,
                summary="News once a second, as server-sent events.",
                media=EVENTS.decode(),
                query=("events",),
                refuses=(TooManyWaiting,),
            ),
            Route(
                method="GET",
                path="/v1/problems",
                handler=self.problems,
                role=Role.READ,
                name="listProblems",
                scope=Scope.FILTERED,
                summary="Queues with problems, the worst first; hanging routes; old transactions.",
                gives=ProblemsOut,
                query=("limit",),
            ),
            Route(
                method="GET",
                path="/v1/samples",
                handler=self.samples,
                role=Role.READ,
                name="getSamples",
                scope=Scope.ALL,
                summary="The counters of all queues together over time, for graphs.",
                gives=GraphOut,
                query=_SPAN,
            ),
            Route(
                method="GET",
                path="/v1/queues/{queue}/samples",
                handler=self.samples,
                role=Role.READ,
                name="getQueueSamples",
                summary="The counters of a queue over time, for graphs.",
                gives=GraphOut,
                query=_SPAN,
            ),
        ]

    async def live(self, request: Request, respond: Respond) -> Response:
        text = request.query("events").get("events")
        events = None if text is None else read_limit(text, most=MOST_EVENTS, name="events")
        if request.method == "HEAD":
            return Response(200, content_type=EVENTS)
        return self._feed.listen(request.caller, events=events)

    async def problems(self, request: Request, respond: Respond) -> Response:
        limit = read_limit(request.query("limit").get("limit"))
        found = [
            problem_out(wrong)
            for wrong in await self._watch.problems()
            if access.sees(request.caller, wrong.glance.queue.name)
        ]
        hanging, old, damage = [], [], None
        if "*" in request.caller.queues:  # a route is nobody's queue
            table = self._routes.table
            hanging = [hanging_out(one, table) for one in await self._watch.hanging()]
            old = [transaction_out(one) for one in await self._watch.old_transactions()]
            damage = self._watch.damage()  # names queues
        out = ProblemsOut(found[:limit], len(found) > limit, hanging, old)
        out.damage = None if damage is None else damage_out(damage)
        return json_response(out)

    async def samples(self, request: Request, respond: Respond) -> Response:
        query = request.query(*_SPAN)
        queue = request.params.get("queue")
        step = query.get("step_ms")
        graph = await self._graphs.draw(
            queue,
            from_at=read_instant("from", query["from"], default=0) if "from" in query else None,
            to_at=read_instant("to", query["to"], default=0) if "to" in query else None,
            step_ms=None if step is None else read_limit(step, most=366 * DAY, name="step_ms"),
        )
        return json_response(graph_out(graph))


def _rendered(look: Look, before: Look | None, caller: Caller) -> bytes:
    return _encode(live_out(look, before, caller))
