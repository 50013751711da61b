"""History and facts."""

from __future__ import annotations

from penstock.api import history
from penstock.api.history import Attempt, Ending, Fact, MessageHistory, SearchFacts, SearchHistory
from penstock.domain import fact as domain_fact
from penstock.domain.access.api_key import Role, allow
from penstock.domain.errors import InvalidRequest
from penstock.domain.fact import FactFilter
from penstock.domain.message import history as domain
from penstock.domain.message.history import HistoryFilter
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import check_name
from penstock.operations.call import Call, Handlers, allow_search
from penstock.operations.paging import next_cursor, past_page
from penstock.ports.unit_of_work import Steps, Work
from penstock.services.history import FactService, HistoryService


class HistoryOperations:
    def __init__(self, service: HistoryService) -> None:
        self._history = service

    def handlers(self) -> Handlers:
        return {history.SEARCH: self.search, history.GET: self.get}

    def search(self, call: Call[None, SearchHistory]) -> Work[history.History]:
        allow_search(call.caller, call.query.queue, Role.READ)
        wanted = _filter(call.query)

        def answer(endings: list[domain.Ending]) -> history.History:
            return history.History(
                endings=[Ending.of(ending, call.instant) for ending in endings],
                next=next_cursor(endings, wanted.limit, "finished_at", "history_no"),
            )

        return self._history.history(wanted).map(answer)

    def get(self, call: Call[None, None]) -> Steps[MessageHistory]:
        past = yield from self._history.past(call.path["id"])
        for queue in past.queues:
            allow(call.caller, Role.READ, queue)
        return MessageHistory(
            endings=[Ending.of(ending, call.instant) for ending in past.endings],
            attempts=[Attempt.of(attempt, call.instant) for attempt in past.attempts],
        )


def _filter(query: SearchHistory) -> HistoryFilter:
    try:
        outcome = None if query.outcome is None else State(query.outcome)
    except ValueError:
        raise InvalidRequest(
            f"outcome is done, dead or cancelled, not {query.outcome!r:.40}"
        ) from None
    return HistoryFilter(
        queue=None if query.queue is None else check_name(query.queue),
        kind=query.kind,
        tag=query.tag,
        entity_id=query.entity_id,
        outcome=outcome,
        **past_page(query, query.from_, query.to),
    )


class FactOperations:
    def __init__(self, service: FactService) -> None:
        self._facts = service

    def handlers(self) -> Handlers:
        return {history.SEARCH_FACTS: self.search}

    def search(self, call: Call[None, SearchFacts]) -> Work[history.Facts]:
        query = call.query
        wanted = FactFilter(
            kind=query.kind,
            subject=query.subject,
            **past_page(query, query.from_, query.to),
        )

        def answer(found: list[domain_fact.Fact]) -> history.Facts:
            return history.Facts(
                facts=[Fact.of(fact, call.instant) for fact in found],
                next=next_cursor(found, wanted.limit, "at", "fact_no"),
            )

        return self._facts.search(wanted).map(answer)
