"""Liveness and readiness of this node; both respond fast, with their own status codes."""

from __future__ import annotations

import asyncio

from penstock.api import health
from penstock.api.health import Health, Part, Readiness
from penstock.domain.errors import PenstockError, StoreUnavailable
from penstock.edge.native.bind import route_of
from penstock.edge.server.errors import error_response
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import HttpRoute
from penstock.services.history import HistoryService
from penstock.supervision import health as supervision
from penstock.version import __version__

READY_PATIENCE_S = 2.0
OK, FAILING = "ok", "failing"
READY, DEGRADED = "ready", "degraded"
DAMAGED = "some pages of the store are damaged: see GET /v1/problems, and run `penstock doctor`"


class HealthApi:
    def __init__(self, history: HistoryService, parts: supervision.Health) -> None:
        self._history = history
        self._health = parts

    def routes(self) -> list[HttpRoute]:
        return [route_of(health.ALIVE, self.healthz), route_of(health.READY, self.readyz)]

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
            text = f"the store has not taken a write within {READY_PATIENCE_S:g} s"
            return error_response(StoreUnavailable(text))
        if self._history.damage() is not None:
            # 200: other queues are still served, and a restart would not help.
            return json_response(Readiness(status=DEGRADED, reason=DAMAGED))
        return json_response(Readiness(status=READY))
