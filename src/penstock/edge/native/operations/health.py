"""Whether this node runs and takes work, for orchestrators.  Neither answer waits for long."""

from __future__ import annotations

import asyncio

import msgspec

from penstock import __version__
from penstock.domain.errors import PenstockError, StoreUnavailable
from penstock.edge.server.errors import error_response
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.services.history import Insight
from penstock.supervision.health import Health

READY_PATIENCE_S = 2.0
OK, FAILING = "ok", "failing"
READY, DEGRADED = "ready", "degraded"
DAMAGED = "some pages of the store are damaged: see GET /v1/problems, and run `penstock doctor`"


class PartOut(msgspec.Struct):
    """A part of the node that does not work."""

    name: str
    state: str
    message: str


class HealthOut(msgspec.Struct, omit_defaults=True):
    status: str
    version: str
    parts: list[PartOut] = []


class Readiness(msgspec.Struct, omit_defaults=True):
    status: str
    reason: str | None = None


class HealthApi:
    def __init__(self, insight: Insight, health: Health) -> None:
        self._insight = insight
        self._health = health

    def routes(self) -> list[Route]:
        return [
            Route(
                method="GET",
                path="/healthz",
                handler=self.healthz,
                name="isAlive",
                summary="Every part of the process runs; else 503 with those that do not.",
                gives=HealthOut,
            ),
            Route(
                method="GET",
                path="/readyz",
                handler=self.readyz,
                name="isReady",
                summary="The store takes work.",
                gives=Readiness,
                refuses=(StoreUnavailable,),
            ),
        ]

    async def healthz(self, request: Request, respond: Respond) -> Response:
        troubles = self._health.troubles()
        parts = [PartOut(one.part, one.state, one.text) for one in troubles]
        if parts:
            return json_response(HealthOut(FAILING, __version__, parts), 503)
        return json_response(HealthOut(OK, __version__))

    async def readyz(self, request: Request, respond: Respond) -> Response:
        try:
            async with asyncio.timeout(READY_PATIENCE_S):
                await self._insight.ready()
        except PenstockError as error:
            return error_response(error)
        except TimeoutError:
            text = f"the store has not taken a write within {READY_PATIENCE_S:g} s"
            return error_response(StoreUnavailable(text))
        if self._insight.damage() is not None:
            # 200: other queues are served, and a restart would not help.
            return json_response(Readiness(DEGRADED, DAMAGED))
        return json_response(Readiness(READY))
