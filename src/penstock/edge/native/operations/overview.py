"""Health of this node, with its own status codes, and metrics as plain text."""

from __future__ import annotations

import asyncio

from penstock.api import overview
from penstock.api.overview import Health, Part, Readiness
from penstock.domain.access.api_key import is_limited
from penstock.domain.errors import PenstockError, StoreUnavailable
from penstock.edge.metrics import (
    render_circuits,
    render_fleets,
    render_queues,
    render_transactions,
    render_upkeep,
)
from penstock.edge.native.bind import route_of
from penstock.edge.server.errors import error_response
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import HttpRoute
from penstock.operations.overview import WaitingCounts, visible, waiting_for
from penstock.runtime.pusher.tally import PushTally
from penstock.services.circuits.circuits import CircuitService
from penstock.services.history import HistoryService
from penstock.services.overview import OverviewService
from penstock.services.scaling import ScalingService
from penstock.supervision import health as supervision
from penstock.version import __version__

READY_PATIENCE_S = 2.0
OK, FAILING = "ok", "failing"
READY, DEGRADED = "ready", "degraded"
DAMAGED = "some pages of the store are damaged: see GET /v1/problems, and run `penstock doctor`"


class HealthApi:
    def __init__(self, history: HistoryService, parts: supervision.NodeHealth) -> None:
        self._history = history
        self._health = parts

    def routes(self) -> list[HttpRoute]:
        return [route_of(overview.ALIVE, self.healthz), route_of(overview.READY, self.readyz)]

    async def healthz(self, request: Request, respond: Respond) -> Response:
        troubles = self._health.troubles()
        parts = tuple(Part(name=one.part, state=one.state, message=one.text) for one in troubles)
        if parts:
            return json_response(Health(status=FAILING, version=__version__, parts=parts), 503)
        return json_response(Health(status=OK, version=__version__))

    async def readyz(self, request: Request, respond: Respond) -> Response:
        try:
            async with asyncio.timeout(READY_PATIENCE_S):
                await self._history.ready()
        except PenstockError as error:
            return error_response(error)
        except TimeoutError:
            text = f"the store has not accepted a write within {READY_PATIENCE_S:g} s"
            return error_response(StoreUnavailable(text))
        if self._history.damage() is not None:
            # 200: other queues are still served, and a restart would not help.
            return json_response(Readiness(status=DEGRADED, reason=DAMAGED))
        return json_response(Readiness(status=READY))


class MetricsApi:
    def __init__(
        self,
        history: HistoryService,
        claims: WaitingCounts,
        circuits: CircuitService,
        pushed: PushTally,
        scaling: ScalingService,
        overview: OverviewService,
    ) -> None:
        self._history = history
        self._claims = claims
        self._circuits = circuits
        self._pushed = pushed
        self._scaling = scaling
        self._overview = overview

    def routes(self) -> list[HttpRoute]:
        return [route_of(overview.METRICS, self.metrics)]

    async def metrics(self, request: Request, respond: Respond) -> Response:
        """Render the metrics; a limited key gets only those of its queues."""
        is_partial = is_limited(request.caller)
        views = visible(request.caller, await self._history.all_queues())
        text = render_queues(
            views,
            waiting_claims=waiting_for(self._claims, views) if is_partial else self._claims.waiting,
            backend=self._history.backend,
            damage=None if is_partial else self._history.damage(),
        )
        if not is_partial:
            text += render_circuits(await self._circuits.overview(), self._pushed.all())
            text += render_fleets(await self._scaling.all())
            now = self._history.stats_of(views).now
            text += render_transactions(await self._overview.transactions(), now=now)
            text += render_upkeep(await self._overview.upkeep())
        return Response(200, text.encode(), content_type=overview.METRICS.media.encode())
