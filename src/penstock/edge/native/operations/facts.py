"""Facts over HTTP."""

from __future__ import annotations

from typing import Any

from penstock.domain.access.api_key import Role, Scope
from penstock.domain.datetimes import read_instant
from penstock.domain.fact import FactFilter
from penstock.edge.native import wire_workers as wire
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.operations.cursor import from_cursor, read_limit, to_cursor
from penstock.services.facts import Facts

_FILTERS = ("kind", "subject", "from", "to", "limit", "cursor")


class FactApi:
    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def routes(self) -> list[Route]:
        return [
            Route(
                method="GET",
                path="/v1/facts",
                handler=self.search,
                role=Role.READ,
                name="searchFacts",
                scope=Scope.ALL,
                summary="What happened to workers and other things than messages, newest first.",
                gives=wire.FactsOut,
                query=_FILTERS,
            )
        ]

    async def search(self, request: Request, respond: Respond) -> Response:
        query = request.query(*_FILTERS)
        before: Any = from_cursor(query.get("cursor"), 2)
        wanted = FactFilter(
            kind=query.get("kind"),
            subject=query.get("subject"),
            from_at=read_instant("from", query.get("from"), default=0),
            to_at=read_instant("to", query.get("to"), default=2**62),
            before=before,
            limit=read_limit(query.get("limit")),
        )
        found = await self._facts.search(wanted)
        following = None
        if len(found) == wanted.limit:
            following = to_cursor(found[-1].at, found[-1].fact_no)
        return json_response(wire.FactsOut([wire.fact_out(fact) for fact in found], following))
