"""The live feed as a stream of events."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from penstock.api import live
from penstock.api.live import Live, LiveQueue, Rates
from penstock.api.queues import Counts, Totals
from penstock.domain.access.api_key import Caller, is_limited, sees
from penstock.domain.limits import SECOND
from penstock.domain.queue import queue as domain_queue
from penstock.edge.instants import to_text
from penstock.edge.live import LiveFeed
from penstock.edge.native.bind import route_of
from penstock.edge.native.query_in import query_reader
from penstock.edge.server.request import Request, Respond, Response
from penstock.edge.server.router import HttpRoute
from penstock.edge.server.stream import EVENTS
from penstock.services.overview import Changed, OverviewLook, OverviewService
from penstock.supervision.health import Health

_encode = msgspec.json.Encoder().encode
_query_of = query_reader(live.WATCH)


class LiveApi:
    def __init__(
        self,
        watch: OverviewService,
        *,
        most_listeners: int,
        is_let_in: Callable[[Caller], bool],
        health: Health | None = None,
    ) -> None:
        self._feed = LiveFeed(
            watch, _rendered, most=most_listeners, is_let_in=is_let_in, health=health
        )

    def routes(self) -> list[HttpRoute]:
        return [route_of(live.WATCH, self.watch)]

    async def watch(self, request: Request, respond: Respond) -> Response:
        events: int | None = _query_of(request).events
        if request.method == "HEAD":
            return Response(200, content_type=EVENTS)
        return self._feed.listen(request.caller, events=events)


def _rendered(look: OverviewLook, before: OverviewLook | None, caller: Caller) -> bytes:
    """Render what the caller may see; totals only for callers that may see all queues."""
    passed_ms = SECOND if before is None else (look.at - before.at) or SECOND
    event = Live(
        at=to_text(look.at),  # type: ignore[arg-type]  # see api/operation.py: Instant
        workers=None,
        open_circuits=None,
        queues=[
            _queue(changed, passed_ms)
            for changed in look.changed
            if sees(caller, changed.queue.name)
        ],
        is_cut=look.is_cut,
    )
    if not is_limited(caller):
        event = msgspec.structs.replace(
            event,
            workers=look.workers,
            open_circuits=look.open_circuits,
            counts=Counts.of(look.total),
            totals=Totals.of(look.total),
            rates=_rates(look.total, None if before is None else before.total, passed_ms),
        )
    return _encode(event)


def _queue(changed: Changed, passed_ms: int) -> LiveQueue:
    queue = changed.queue
    return LiveQueue(
        name=queue.name,
        counts=Counts.of(changed.counts),
        totals=Totals.of(changed.counts),
        rates=_rates(changed.counts, changed.before, passed_ms),
        is_paused=queue.is_paused,
        held_by=queue.held_by,
    )


def _rates(after: domain_queue.Counts, before: domain_queue.Counts | None, passed_ms: int) -> Rates:
    if before is None:
        return Rates()
    now, then = (msgspec.structs.asdict(Totals.of(counts)) for counts in (after, before))
    return Rates(**{name: round((now[name] - then[name]) * SECOND / passed_ms, 3) for name in now})
