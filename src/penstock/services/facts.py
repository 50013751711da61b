"""Facts: searches the history of everything but messages."""

from __future__ import annotations

from penstock.domain.fact import Fact, FactFilter, check_filter
from penstock.domain.limits import Limits
from penstock.ports.store import Store
from penstock.ports.unit_of_work import Work, read


class FactService:
    def __init__(self, store: Store, limits: Limits) -> None:
        self._store = store
        self._limits = limits

    def search(self, wanted: FactFilter) -> Work[list[Fact]]:
        check_filter(wanted, max_limit=self._limits.max_claim)
        return read(self._store, lambda session: session.facts.search(wanted))
