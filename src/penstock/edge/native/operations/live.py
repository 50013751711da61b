"""The live feed as a stream of events.

While there are listeners, one read of the store per second serves all of them.  A listener with a
key for some queues gets only their updates, and no totals.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from penstock.api import counters
from penstock.api.counters import Live, LiveQueue, Rates
from penstock.api.queues import Counts, Totals
from penstock.domain.access.api_key import Caller, is_limited, sees
from penstock.domain.errors import TooManyWaiting
from penstock.domain.limits import SECOND
from penstock.domain.queue import queue as domain_queue
from penstock.edge.instants import to_text
from penstock.edge.native.bind import query_reader, route_of
from penstock.edge.server.request import Request, Respond, Response
from penstock.edge.server.router import HttpRoute
from penstock.edge.server.stream import EVENTS, Stream, event
from penstock.services.overview import ChangedQueue, OverviewService, OverviewSnapshot
from penstock.supervision.health import NodeHealth, NodePart
from penstock.supervision.threads import start_supervised

EVERY_S = 1.0
_PATIENCE_S = 5.0
_NOTHING = b": \n\n"  # a comment, so that proxies keep the connection and dead peers are noticed

_log = logging.getLogger("penstock.live")

Render = Callable[[OverviewSnapshot, OverviewSnapshot | None, Caller], bytes]


class LiveListener:
    __slots__ = ("caller", "left")

    def __init__(self, caller: Caller, left: int | None) -> None:
        self.caller = caller
        self.left = left  # events left until the stream ends; None: it does not end


class LiveFeed:
    def __init__(
        self,
        overview: OverviewService,
        render: Render,
        *,
        most: int,
        is_still_valid: Callable[[Caller], bool],
        health: NodeHealth | None = None,
    ) -> None:
        self._health = health or NodeHealth()
        self._overview = overview
        self._is_let_in = is_still_valid
        self._render = render
        self._most = most
        self._listeners: dict[Stream, LiveListener] = {}
        self._snapshots: tuple[OverviewSnapshot, OverviewSnapshot | None] | None = (
            None  # the latest snapshot and the one before
        )
        self._task: asyncio.Task[None] | None = None

    @property
    def listening(self) -> int:
        return len(self._listeners)

    def listen(self, caller: Caller, *, events: int | None = None) -> Stream:
        """Add a listener; raises TooManyWaiting."""
        if len(self._listeners) >= self._most:
            raise TooManyWaiting(f"{self._most} clients listen already; poll /v1/stats instead")
        stream = Stream(on_lost=self._forget)
        self._listeners[stream] = LiveListener(caller, events)
        if self._task is None:
            self._start()
        elif self._snapshots is not None:
            self._send(stream, *self._snapshots, {})
        return stream

    async def _run(self, part: NodePart) -> None:
        while self._listeners:
            await self._poll()
            part.moves += 1
            await asyncio.sleep(EVERY_S)

    def _on_end(self, _: asyncio.Task[None]) -> None:
        self._task = None
        if self._listeners:  # a listener arrived in the meantime
            self._start()

    def _start(self) -> None:
        self._snapshots = None
        self._task = start_supervised("live", self._run, health=self._health)
        self._task.add_done_callback(self._on_end)

    async def _poll(self) -> None:
        self._end_without_key()
        before = None if self._snapshots is None else self._snapshots[0]
        try:
            async with asyncio.timeout(_PATIENCE_S):  # do not let listeners wait for a slow store
                snapshot = await self._overview.snapshot(before)
        except Exception as error:  # any error; try again in a second
            _log.warning("live feed cannot read the store: %s", str(error) or type(error).__name__)
            for stream in list(self._listeners):
                stream.send(_NOTHING)
            return
        self._snapshots = (snapshot, before)
        made: dict[tuple[str, ...], bytes] = {}
        for stream in list(self._listeners):
            self._send(stream, snapshot, before, made)

    def _end_without_key(self) -> None:
        """End streams whose key was revoked, and keyless ones once the first key exists."""
        for stream, listener in list(self._listeners.items()):
            if not self._is_let_in(listener.caller):
                del self._listeners[stream]
                stream.end()

    def _send(
        self,
        stream: Stream,
        snapshot: OverviewSnapshot,
        before: OverviewSnapshot | None,
        made: dict[tuple[str, ...], bytes],
    ) -> None:
        listener = self._listeners[stream]
        sees = listener.caller.queues
        if sees not in made:
            made[sees] = event(self._render(snapshot, before, listener.caller), name="live")
        stream.send(made[sees])
        if listener.left is not None:
            listener.left -= 1
            if listener.left <= 0:
                del self._listeners[stream]
                stream.end()

    def _forget(self, stream: Stream) -> None:
        self._listeners.pop(stream, None)


_encode = msgspec.json.Encoder().encode
_query_of = query_reader(counters.WATCH)


class LiveApi:
    def __init__(
        self,
        overview: OverviewService,
        *,
        most_listeners: int,
        is_still_valid: Callable[[Caller], bool],
        health: NodeHealth | None = None,
    ) -> None:
        self._feed = LiveFeed(
            overview,
            _render_live,
            most=most_listeners,
            is_still_valid=is_still_valid,
            health=health,
        )

    def routes(self) -> list[HttpRoute]:
        return [route_of(counters.WATCH, self.watch)]

    async def watch(self, request: Request, respond: Respond) -> Response:
        events: int | None = _query_of(request).events
        if request.method == "HEAD":
            return Response(200, content_type=EVENTS)
        return self._feed.listen(request.caller, events=events)


def _render_live(
    snapshot: OverviewSnapshot, before: OverviewSnapshot | None, caller: Caller
) -> bytes:
    """Render what the caller may see; totals only for callers that may see all queues."""
    passed_ms = SECOND if before is None else (snapshot.at - before.at) or SECOND
    event = Live(
        at=to_text(snapshot.at),  # type: ignore[arg-type]  # see api/operation.py: Instant
        workers=None,
        open_circuits=None,
        queues=[
            _queue(changed, passed_ms)
            for changed in snapshot.changed
            if sees(caller, changed.queue.name)
        ],
        is_cut=snapshot.is_cut,
    )
    if not is_limited(caller):
        event = msgspec.structs.replace(
            event,
            workers=snapshot.workers,
            open_circuits=snapshot.open_circuits,
            counts=Counts.copy_of(snapshot.total),
            totals=Totals.of(snapshot.total),
            rates=_rates(snapshot.total, None if before is None else before.total, passed_ms),
        )
    return _encode(event)


def _queue(changed: ChangedQueue, passed_ms: int) -> LiveQueue:
    queue = changed.queue
    return LiveQueue(
        name=queue.name,
        counts=Counts.copy_of(changed.counts),
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
