"""Facts."""

from __future__ import annotations

from typing import Any

from penstock.api import facts
from penstock.api.facts import Fact, SearchFacts
from penstock.domain import fact as domain
from penstock.domain.datetimes import read_instant
from penstock.domain.fact import FactFilter
from penstock.operations.call import Call, Handlers
from penstock.operations.cursor import from_cursor, to_cursor
from penstock.ports.unit_of_work import Work
from penstock.services.history import FactService


class FactOperations:
    def __init__(self, service: FactService) -> None:
        self._facts = service

    def handlers(self) -> Handlers:
        return {facts.SEARCH: self.search}

    def search(self, call: Call[None, SearchFacts]) -> Work[facts.Facts]:
        query = call.query
        before: Any = from_cursor(query.cursor, 2)
        wanted = FactFilter(
            kind=query.kind,
            subject=query.subject,
            from_at=read_instant("from", query.from_, default=0),
            to_at=read_instant("to", query.to, default=2**62),
            before=before,
            limit=query.limit,
        )

        def answer(found: list[domain.Fact]) -> facts.Facts:
            following = None
            if len(found) == wanted.limit:
                following = to_cursor(found[-1].at, found[-1].fact_no)
            return facts.Facts(
                facts=[Fact.of(fact, call.instant) for fact in found], next=following
            )

        return self._facts.search(wanted).map(answer)
