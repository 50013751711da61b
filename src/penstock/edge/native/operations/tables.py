"""The pipeline's tables over HTTP, as small JSON.  The server needs no Spark for it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from penstock.domain.access.api_key import Role, Scope
from penstock.domain.errors import TableNotFound
from penstock.domain.lake.tables import MAX_ROWS, GoldReadiness, GoldTable
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.operations.cursor import read_limit
from penstock.services.tables import Gold

_QUERY = ("from_day", "to_day", "limit")
_FIRST_DAY, _LAST_DAY = "0000-01-01", "9999-12-31"


class InsightsOut(msgspec.Struct):
    readiness: GoldReadiness
    folder: str
    tables: list[GoldTable]


class InsightRowsOut(msgspec.Struct):
    columns: list[str]
    rows: list[list[Any]]
    is_cut: bool


class InsightsApi:
    def __init__(self, gold: Gold) -> None:
        self._gold = gold

    def routes(self) -> list[Route]:
        return [
            Route(
                method="GET",
                path="/v1/insights",
                handler=self.list,
                name="listInsights",
                scope=Scope.ALL,
                summary="The tables that the pipeline has made of history.",
                role=Role.READ,
                gives=InsightsOut,
            ),
            Route(
                method="GET",
                path="/v1/insights/{table}",
                handler=self.get,
                name="getInsight",
                scope=Scope.ALL,
                summary="Rows of one of these tables, the newest days first.",
                role=Role.READ,
                gives=InsightRowsOut,
                query=_QUERY,
                refuses=(TableNotFound,),
            ),
        ]

    async def list(self, request: Request, respond: Respond) -> Response:
        readiness, tables = await asyncio.to_thread(
            lambda: (self._gold.readiness(), self._gold.tables())
        )
        return json_response(InsightsOut(readiness, self._gold.folder, tables))

    async def get(self, request: Request, respond: Respond) -> Response:
        query = request.query(*_QUERY)
        found = await asyncio.to_thread(
            self._gold.rows,
            request.params["table"],
            from_day=query.get("from_day", _FIRST_DAY),
            to_day=query.get("to_day", _LAST_DAY),
            limit=read_limit(query.get("limit"), most=MAX_ROWS),
        )
        return json_response(InsightRowsOut(found.columns, found.rows, found.is_cut))
