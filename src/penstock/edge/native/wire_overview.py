"""The JSON of what operators watch: news, problems, graphs."""

from __future__ import annotations

import msgspec

from penstock.api.queues import Counts, Totals
from penstock.domain.access import api_key as access
from penstock.domain.access.api_key import Caller
from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.delivery.route import RouteTable
from penstock.domain.limits import SECOND
from penstock.domain.queue import counts as domain_counts
from penstock.domain.queue.minute_counters import Point
from penstock.domain.queue.problem import HangingRoute, OldTransaction, Problem, TransactionKind
from penstock.domain.store.damage import Damage
from penstock.edge.instants import to_text
from penstock.services.graphs import Graph
from penstock.services.overview import Changed, Look, Wrong


class RatesOut(msgspec.Struct):
    """How many in a second."""

    sent: float = 0
    done: float = 0
    dead: float = 0
    cancelled: float = 0
    failed: float = 0
    expired_leases: float = 0
    claimed: float = 0


class LiveQueueOut(msgspec.Struct, omit_defaults=True):
    name: str
    counts: Counts
    totals: Totals
    rates: RatesOut
    is_paused: bool
    held_by: str | None = None


class LiveOut(msgspec.Struct):
    at: str
    workers: int | None  # null where the key is for some queues only
    open_circuits: int | None  # likewise
    queues: list[LiveQueueOut]
    is_cut: bool
    counts: Counts | None = None
    totals: Totals | None = None
    rates: RatesOut | None = None


class QueueProblemsOut(msgspec.Struct):
    queue: str
    problems: list[Problem]
    counts: Counts
    oldest_ready_at: str | None
    is_paused: bool
    held_by: str | None


class HangingRouteOut(msgspec.Struct):
    route: str
    endpoint: str | None
    deliveries: int
    since: str


class OldTransactionOut(msgspec.Struct):
    kind: TransactionKind
    pid: int | None
    name: str | None
    application: str | None
    user: str | None
    since: str | None
    transactions: int


class DamagedPageOut(msgspec.Struct):
    page: int
    table: str | None
    index: str | None
    queues: list[str]
    text: str


class DamageOut(msgspec.Struct):
    text: str
    pages: list[DamagedPageOut]


class ProblemsOut(msgspec.Struct):
    problems: list[QueueProblemsOut]
    is_cut: bool
    hanging_routes: list[HangingRouteOut] = []
    old_transactions: list[OldTransactionOut] = []
    damage: DamageOut | None = None


class PointOut(msgspec.Struct, omit_defaults=True):
    """One step of a graph; how long messages took only where some were done."""

    at: str
    waiting: int
    ready: int
    leased: int
    dead: int
    most_ready: int
    happened: Totals
    oldest_ready_at: str | None = None
    wait_p50_ms: int | None = None
    wait_p95_ms: int | None = None
    work_p50_ms: int | None = None
    work_p95_ms: int | None = None


class GraphOut(msgspec.Struct):
    from_: str = msgspec.field(name="from")
    to: str
    step_ms: int
    points: list[PointOut]


def graph_out(graph: Graph) -> GraphOut:
    return GraphOut(
        to_text(graph.from_at),
        to_text(graph.to_at),
        graph.step_ms,
        [_point_out(point) for point in graph.points],
    )


def _point_out(point: Point) -> PointOut:
    oldest_at, happened = point.oldest_ready_at, point.happened
    return PointOut(
        to_text(point.at),
        point.waiting,
        point.ready,
        point.leased,
        point.dead,
        point.most_ready,
        Totals(
            sent=happened["sent_total"],
            done=happened["done_total"],
            dead=happened["dead_total"],
            cancelled=happened["cancelled_total"],
            failed=happened["failed_total"],
            expired_leases=happened["expired_total"],
            claimed=happened["claimed_total"],
        ),
        None if oldest_at is None else to_text(oldest_at),
        *msgspec.structs.astuple(point.latency),
    )


def live_out(look: Look, before: Look | None, caller: Caller) -> LiveOut:
    """Only what the caller may see; what all queues are together only for those who see all."""
    passed_ms = SECOND if before is None else (look.at - before.at) or SECOND
    out = LiveOut(
        to_text(look.at),
        None,
        None,
        [
            _queue_out(changed, passed_ms)
            for changed in look.changed
            if access.sees(caller, changed.queue.name)
        ],
        look.is_cut,
    )
    if not access.is_limited(caller):
        out.workers, out.open_circuits = look.workers, look.open_circuits
        out.counts, out.totals = Counts.of(look.total), Totals.of(look.total)
        out.rates = _rates(look.total, None if before is None else before.total, passed_ms)
    return out


def problem_out(wrong: Wrong) -> QueueProblemsOut:
    glance = wrong.glance
    oldest_at = glance.oldest_ready_at
    return QueueProblemsOut(
        glance.queue.name,
        list(wrong.problems),
        Counts.of(glance.counts),
        None if oldest_at is None else to_text(oldest_at),
        glance.queue.is_paused,
        glance.queue.held_by,
    )


def damage_out(damage: Damage) -> DamageOut:
    pages = [
        DamagedPageOut(page.page_no, page.table, page.index, list(page.queues), page.text)
        for page in damage.pages
    ]
    return DamageOut(damage.text, pages)


def hanging_out(hanging: HangingRoute, table: RouteTable) -> HangingRouteOut:
    route = table.of_hash(circuit_hash(hanging.pattern))
    return HangingRouteOut(
        hanging.pattern,
        None if route is None else route.endpoint,
        hanging.deliveries,
        to_text(hanging.since),
    )


def transaction_out(one: OldTransaction) -> OldTransactionOut:
    return OldTransactionOut(
        one.kind,
        one.pid,
        one.name,
        one.application,
        one.user,
        None if one.since is None else to_text(one.since),
        one.transactions,
    )


def _queue_out(changed: Changed, passed_ms: int) -> LiveQueueOut:
    queue = changed.queue
    return LiveQueueOut(
        queue.name,
        Counts.of(changed.counts),
        Totals.of(changed.counts),
        _rates(changed.counts, changed.before, passed_ms),
        queue.is_paused,
        queue.held_by,
    )


def _rates(
    after: domain_counts.Counts, before: domain_counts.Counts | None, passed_ms: int
) -> RatesOut:
    if before is None:
        return RatesOut()

    def per_second(name: str) -> float:
        many: int = getattr(after, name) - getattr(before, name)
        return round(many * SECOND / passed_ms, 3)

    return RatesOut(
        sent=per_second("sent_total"),
        done=per_second("done_total"),
        dead=per_second("dead_total"),
        cancelled=per_second("cancelled_total"),
        failed=per_second("failed_total"),
        expired_leases=per_second("expired_total"),
        claimed=per_second("claimed_total"),
    )
