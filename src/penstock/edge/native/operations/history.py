"""History, stats and metrics over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock import __version__
from penstock.api.queues import Counts, Totals
from penstock.domain.access import api_key as access
from penstock.domain.access.api_key import Caller, Role, Scope
from penstock.edge.instants import to_text
from penstock.edge.metrics import circuits as circuit_metrics
from penstock.edge.metrics.fleets import render_fleets
from penstock.edge.metrics.queues import render
from penstock.edge.metrics.transactions import render_transactions
from penstock.edge.native import wire
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.edge.waiting_claims import WaitingRoom
from penstock.runtime.pusher.tally import Tally
from penstock.services.circuits.circuits import Circuits
from penstock.services.history import Insight
from penstock.services.overview import Watch
from penstock.services.queues import QueueView
from penstock.services.scaling import Scaling


class InsightApi:
    def __init__(
        self,
        insight: Insight,
        room: WaitingRoom,
        circuits: Circuits,
        pushed: Tally,
        scaling: Scaling,
        watch: Watch,
    ) -> None:
        self._insight = insight
        self._scaling = scaling
        self._watch = watch
        self._room = room
        self._circuits = circuits
        self._pushed = pushed

    def routes(self) -> list[Route]:
        def route(path: str, handler: Any, summary: str, **more: Any) -> Route:
            return Route(method="GET", path=path, handler=handler, summary=summary, **more)

        return [
            route(
                "/v1/stats",
                self.stats,
                "Counts over all queues that the key is for.",
                name="getStats",
                scope=Scope.FILTERED,
                role=Role.READ,
                gives=wire.StatsOut,
            ),
            route(
                "/metrics",
                self.metrics,
                "Metrics for Prometheus.",
                name="getMetrics",
                scope=Scope.FILTERED,
                role=Role.READ,
                media="text/plain; version=0.0.4",
            ),
        ]

    async def stats(self, request: Request, respond: Respond) -> Response:
        if access.is_limited(request.caller):
            views = await self._views(request.caller)
            stats, waiting = self._insight.stats_of(views), self._waiting(views)
        else:
            stats, waiting = await self._insight.stats(), self._room.waiting
        return json_response(
            wire.StatsOut(
                __version__,
                stats.backend,
                stats.queues,
                waiting,
                to_text(stats.now),
                Counts.of(stats.counts),
                Totals.of(stats.counts),
            )
        )

    async def metrics(self, request: Request, respond: Respond) -> Response:
        """Circuits, deliveries by route and fleets concern all queues: not for limited keys."""
        is_limited = access.is_limited(request.caller)
        views = await self._views(request.caller)
        text = render(
            views,
            waiting_claims=self._waiting(views) if is_limited else self._room.waiting,
            backend=self._insight.backend,
            damage=None if is_limited else self._insight.damage(),
        )
        if not is_limited:
            text += circuit_metrics.render(await self._circuits.overview(), self._pushed.all())
            text += render_fleets(await self._scaling.all())
            now = self._insight.stats_of(views).now
            text += render_transactions(await self._watch.transactions(), now=now)
        return Response(200, text.encode(), content_type=b"text/plain; version=0.0.4")

    async def _views(self, caller: Caller) -> list[QueueView]:
        """The queues that the caller's key is for."""
        views = await self._insight.all_queues()
        return [view for view in views if access.sees(caller, view.queue.name)]

    def _waiting(self, views: Sequence[QueueView]) -> int:
        return self._room.waiting_for(view.queue.queue_no for view in views)
