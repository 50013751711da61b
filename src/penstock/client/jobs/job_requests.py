"""What an application asks about its jobs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from penstock.api.history import Ending
from penstock.api.messages import Acted, Message
from penstock.client.jobs.job_records import JobCounts, JobPage, counts_of, job_of
from penstock.client.remote.server import Remote
from penstock.client.request_kinds import Ask
from penstock.domain.datetimes import moment_of
from penstock.domain.errors import InvalidRequest, QueueNotFound
from penstock.domain.message.history import HistoryFilter, check_filter
from penstock.domain.message.lifecycle import State
from penstock.domain.message.selection import BulkAct, BulkOrder, Pick
from penstock.operations.messages import acted_of
from penstock.ports.store import Session
from penstock.services.message_views import MessageView, view_of_id
from penstock.services.queues import CHUNK
from penstock.wiring.broker import Broker

Queues = list[tuple[str, JobCounts]]


class Which(msgspec.Struct, frozen=True, kw_only=True):
    kind: str | None = None
    tag: str | None = None

    def named(self) -> dict[str, Any]:
        return {name: v for name in ("kind", "tag") if (v := getattr(self, name)) is not None}


class GetJob(Ask[Message]):
    def __init__(self, job_id: str) -> None:
        self._id = job_id

    def in_store(self, broker: Broker) -> Callable[[Session], Message]:
        return lambda session: job_of(view_of_id(session, self._id))

    def over_http(self, remote: Remote) -> Message:
        return remote.messages.get(self._id)


class ActOnJob(Ask[Acted]):
    def __init__(self, job_id: str, order: BulkOrder) -> None:
        self._id = job_id
        self._order = order

    def in_store(self, broker: Broker) -> Callable[[Session], Acted]:
        act = broker.picking.act(self._id, self._order)
        return act.map(partial(acted_of, instant=moment_of)).run_in

    def over_http(self, remote: Remote) -> Acted:
        order, messages = self._order, remote.messages
        match order.act:
            case BulkAct.CANCEL:
                return messages.cancel(
                    self._id, reason=order.reason, is_running_ok=order.is_running_ok
                )
            case BulkAct.REDRIVE:
                return messages.redrive(self._id)
            case BulkAct.RESCHEDULE:
                assert order.due_at is not None
                return messages.reschedule(self._id, moment_of(order.due_at))
        raise InvalidRequest(f"{order.act} is not an act on one job")


class BrowseJobs(Ask[JobPage]):
    """Jobs of one queue in one state; a page may be short and have a next one."""

    def __init__(
        self, queue: str, state: State, which: Which, *, limit: int, cursor: str | None
    ) -> None:
        self._queue = queue
        self._state = state
        self._which = which
        self._limit = limit
        self._cursor = cursor

    def in_store(self, broker: Broker) -> Callable[[Session], JobPage]:
        pick = Pick(state=self._state, **self._which.named())
        after: Any = place_of(self._cursor, 4)

        found = broker.picking.page(self._queue, pick, limit=self._limit, after=after)

        def do(session: Session) -> JobPage:
            try:
                page = found.run_in(session)
            except QueueNotFound:
                return JobPage([])
            return JobPage(list(map(job_of, page.views)), cursor_of(page.after))

        return do

    def over_http(self, remote: Remote) -> JobPage:
        try:
            page = remote.messages.browse(
                self._queue,
                state=self._state,
                limit=self._limit,
                cursor=self._cursor,
                **self._which.named(),
            )
        except QueueNotFound:
            return JobPage([])
        return JobPage(page.messages, page.next)


class EndedJobs(Ask[JobPage]):
    """From history, newest first, without what was sent."""

    def __init__(
        self, queue: str | None, outcome: State, which: Which, *, limit: int, cursor: str | None
    ) -> None:
        self._queue = queue
        self._outcome = outcome
        self._which = which
        self._limit = limit
        self._cursor = cursor

    def in_store(self, broker: Broker) -> Callable[[Session], JobPage]:
        wanted = HistoryFilter(
            queue=self._queue,
            outcome=self._outcome,
            before=place_of(self._cursor, 2),  # type: ignore[arg-type]
            limit=self._limit,
            **self._which.named(),
        )
        check_filter(wanted, max_limit=broker.settings.limits.max_claim)

        def do(session: Session) -> JobPage:
            endings = session.history.search(wanted)
            jobs = [job_of(MessageView(ending.queue, ending, None)) for ending in endings]
            is_last = len(endings) < self._limit
            last = None if is_last else (endings[-1].finished_at, endings[-1].history_no)
            return JobPage(jobs, cursor_of(last))

        return do

    def over_http(self, remote: Remote) -> JobPage:
        page = remote.history.page(
            queue=self._queue,
            outcome=self._outcome,
            limit=self._limit,
            cursor=self._cursor,
            **self._which.named(),
        )
        return JobPage(list(map(_ended, page.endings)), page.next)


class SomeQueues(Ask[Queues]):
    """Queues by name behind `after`, with their counters."""

    def __init__(self, after: str, *, limit: int = 100) -> None:
        self._after = after
        self._limit = limit

    def in_store(self, broker: Broker) -> Callable[[Session], Queues]:
        def do(session: Session) -> Queues:
            queues = session.queues.page(prefix="", after=self._after, limit=self._limit)
            counts = session.queues.counts([queue.queue_no for queue in queues])
            return [(queue.name, counts_of(counts[queue.queue_no])) for queue in queues]

        return do

    def over_http(self, remote: Remote) -> Queues:
        page = remote.queues.page(limit=self._limit, cursor=self._after or None)
        return [(queue.name, _counts(queue)) for queue in page.queues]


class CountJobs(Ask[JobCounts]):
    """By the counters that every transaction maintains; None: of all queues."""

    def __init__(self, queue: str | None) -> None:
        self._queue = queue

    def in_store(self, broker: Broker) -> Callable[[Session], JobCounts]:
        def do(session: Session) -> JobCounts:
            if self._queue is None:
                return counts_of(session.queues.total())
            found = session.queues.find(self._queue)
            if found is None:
                return JobCounts()
            return counts_of(session.queues.counts([found.queue_no])[found.queue_no])

        return do

    def over_http(self, remote: Remote) -> JobCounts:
        try:
            return _counts(
                remote.stats() if self._queue is None else remote.queues.get(self._queue)
            )
        except QueueNotFound:
            return JobCounts()


class RedriveSome(Ask[int]):
    """A chunk of a queue's dead jobs, so that others get their turn."""

    def __init__(self, queue: str, *, limit: int) -> None:
        self._queue = queue
        self._limit = min(limit, CHUNK)

    def in_store(self, broker: Broker) -> Callable[[Session], int]:
        now = broker.clock.now()

        def do(session: Session) -> int:
            found = session.queues.find(self._queue)
            if found is None:
                raise QueueNotFound(self._queue)
            return session.messages.redrive(found.queue_no, to=None, limit=self._limit, now=now)

        return do

    def over_http(self, remote: Remote) -> int:
        return remote.queues.redrive(self._queue, limit=self._limit)


def cursor_of(place: tuple[int, ...] | None) -> str | None:
    return None if place is None else ",".join(map(str, place))


def place_of(cursor: str | None, size: int) -> tuple[int, ...] | None:
    """Raises InvalidRequest for a cursor that no page has given."""
    if cursor is None:
        return None
    try:
        place = tuple(map(int, cursor.split(",")))
    except ValueError:
        place = ()
    if len(place) != size:
        raise InvalidRequest(f"{cursor!r} is not a cursor of app.jobs.list")
    return place


def _ended(ending: Ending) -> Message:
    fields = {name: getattr(ending, name) for name in ending.__struct_fields__}
    return Message(state=fields.pop("outcome"), **fields)


def _counts(found: Any) -> JobCounts:
    return JobCounts(**msgspec.structs.asdict(found.counts), totals=found.totals)
