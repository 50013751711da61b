"""Stats, problems and graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from penstock.api import counters, overview
from penstock.api.counters import GetSamples, Graph, Point
from penstock.api.overview import (
    BloatedTable,
    Damage,
    HangingRoute,
    ListProblems,
    OldTransaction,
    Problems,
    QueueProblems,
    Stats,
)
from penstock.api.queues import Counts, Totals
from penstock.domain.access.api_key import Caller, is_limited, sees
from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.datetimes import read_instant
from penstock.domain.queue import problem
from penstock.operations.call import Call, Handlers
from penstock.ports.unit_of_work import Steps, Work
from penstock.services import overview as overviews
from penstock.services.history import HistoryService
from penstock.services.overview import Graphs, OverviewService
from penstock.services.queues import QueueView
from penstock.services.routes import RouteService


class WaitingCounts(Protocol):
    """Claims on this node that are waiting for a message."""

    @property
    def waiting(self) -> int: ...

    def waiting_for(self, queue_nos: Iterable[int]) -> int: ...


class OverviewOperations:
    def __init__(
        self,
        history: HistoryService,
        overview: OverviewService,
        graphs: Graphs,
        routes: RouteService,
        claims: WaitingCounts,
        *,
        version: str,
    ) -> None:
        self._history = history
        self._overview = overview
        self._graphs = graphs
        self._routes = routes
        self._claims = claims
        self._version = version

    def handlers(self) -> Handlers:
        return {
            overview.STATS: self.stats,
            overview.PROBLEMS: self.problems,
            counters.SAMPLES: self.samples,
            counters.QUEUE_SAMPLES: self.samples,
        }

    def stats(self, call: Call[None, None]) -> Steps[Stats]:
        if is_limited(call.caller):
            views = visible(call.caller, (yield from self._history.all_queues()))
            stats, waiting = self._history.stats_of(views), waiting_for(self._claims, views)
        else:
            stats, waiting = (yield from self._history.stats()), self._claims.waiting
        return Stats.copy_of(
            stats,
            call.instant,
            version=self._version,
            waiting_claims=waiting,
            counts=Counts.copy_of(stats.counts),
            totals=Totals.of(stats.counts),
        )

    def problems(self, call: Call[None, ListProblems]) -> Steps[Problems]:
        limit, instant = call.query.limit, call.instant
        found = [
            QueueProblems.of(wrong.snapshot, wrong.problems, instant)
            for wrong in (yield from self._overview.problems())
            if sees(call.caller, wrong.snapshot.queue.name)
        ]
        kinds = Counter(kind for one in found for kind in one.problems)
        if (
            "*" not in call.caller.queues
        ):  # routes belong to no queue, and damage may name queues that the caller may not see
            return Problems(
                problems=found[:limit], is_cut=len(found) > limit, queues_by_problem=kinds
            )
        hanging = yield from self._overview.hanging()
        old = yield from self._overview.old_transactions()
        upkeep = yield from self._overview.upkeep()
        damage = self._history.damage()
        return Problems(
            problems=found[:limit],
            is_cut=len(found) > limit,
            queues_by_problem=kinds,
            hanging_routes=tuple(
                HangingRoute.of(one, self._endpoint(one), instant) for one in hanging
            ),
            old_transactions=tuple(OldTransaction.copy_of(one, instant) for one in old),
            bloated_tables=tuple(
                BloatedTable.copy_of(one, instant, table=one.name) for one in upkeep.bloated
            ),
            notification_queue=(
                upkeep.notifications if upkeep.is_notification_queue_full else None
            ),
            damage=None if damage is None else Damage.of(damage),
        )

    def samples(self, call: Call[None, GetSamples]) -> Work[Graph]:
        begin, end = call.query.from_, call.query.to

        def answer(graph: overviews.Graph) -> Graph:
            return Graph(
                from_=call.instant(graph.from_at),
                to=call.instant(graph.to_at),
                step_ms=graph.step_ms,
                points=[Point.of(point, call.instant) for point in graph.points],
            )

        return self._graphs.draw(
            call.path.get("queue"),
            from_at=None if begin is None else read_instant("from", begin, default=0),
            to_at=None if end is None else read_instant("to", end, default=0),
            step_ms=call.query.step_ms,
        ).map(answer)

    def _endpoint(self, hanging: problem.HangingRoute) -> str | None:
        route = self._routes.of_hash(circuit_hash(hanging.pattern))
        return None if route is None else route.endpoint


def visible(caller: Caller, views: Iterable[QueueView]) -> list[QueueView]:
    """The queues that the caller's key covers."""
    return [view for view in views if sees(caller, view.queue.name)]


def waiting_for(claims: WaitingCounts, views: Sequence[QueueView]) -> int:
    return claims.waiting_for(view.queue.queue_no for view in views)
