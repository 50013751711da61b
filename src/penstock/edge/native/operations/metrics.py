"""Metrics for Prometheus, as plain text instead of an answer record."""

from __future__ import annotations

from penstock.api import overview
from penstock.domain.access.api_key import is_limited
from penstock.edge.metrics import circuits as circuit_metrics
from penstock.edge.metrics.fleets import render_fleets
from penstock.edge.metrics.queues import render
from penstock.edge.metrics.transactions import render_transactions
from penstock.edge.native.bind import route_of
from penstock.edge.server.request import Request, Respond, Response
from penstock.edge.server.router import HttpRoute
from penstock.operations.overview import WaitingCounts, visible, waiting_for
from penstock.runtime.pusher.tally import PushTally
from penstock.services.circuits.circuits import CircuitService
from penstock.services.history import HistoryService
from penstock.services.overview import OverviewService
from penstock.services.scaling import ScalingService


class MetricsApi:
    def __init__(
        self,
        history: HistoryService,
        claims: WaitingCounts,
        circuits: CircuitService,
        pushed: PushTally,
        scaling: ScalingService,
        watch: OverviewService,
    ) -> None:
        self._history = history
        self._claims = claims
        self._circuits = circuits
        self._pushed = pushed
        self._scaling = scaling
        self._watch = watch

    def routes(self) -> list[HttpRoute]:
        return [route_of(overview.METRICS, self.metrics)]

    async def metrics(self, request: Request, respond: Respond) -> Response:
        """Render the metrics; a limited key gets only those of its queues."""
        is_partial = is_limited(request.caller)
        views = visible(request.caller, await self._history.all_queues())
        text = render(
            views,
            waiting_claims=waiting_for(self._claims, views) if is_partial else self._claims.waiting,
            backend=self._history.backend,
            damage=None if is_partial else self._history.damage(),
        )
        if not is_partial:
            text += circuit_metrics.render(await self._circuits.overview(), self._pushed.all())
            text += render_fleets(await self._scaling.all())
            now = self._history.stats_of(views).now
            text += render_transactions(await self._watch.transactions(), now=now)
        return Response(200, text.encode(), content_type=overview.METRICS.media.encode())
