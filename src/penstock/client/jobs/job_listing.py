"""Pages and counts of jobs: one queue and state after another, or from history."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TypedDict

import msgspec
from msgspec.structs import replace

from penstock.api import browsing, history, queues
from penstock.api.browsing import Browse
from penstock.api.history import Ending, SearchHistory
from penstock.api.messages import Message
from penstock.api.queues import ListQueues, Totals
from penstock.client.channel import Ask, Flow
from penstock.domain.errors import InvalidRequest, QueueNotFound
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Counts


class JobPage(msgspec.Struct, frozen=True):
    """Some jobs; `next` is the cursor of the next page, None after the last."""

    jobs: list[Message]
    next: str | None = None

    def __iter__(self) -> Iterator[Message]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return len(self.jobs)


class JobCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that exist now, by state; `totals` counts all that have ever existed."""

    waiting: int = 0
    ready: int = 0
    leased: int = 0
    dead: int = 0
    totals: Totals = Totals.of(Counts())


MAX_LIMIT = 1_000
ENDED = (State.DONE, State.CANCELLED)  # found only in history
_IN_QUEUES = (State.LEASED, State.READY, State.WAITING, State.DEAD)


class JobFilter(TypedDict, total=False):
    kind: str | None
    tag: str | None


class _Place(msgspec.Struct, frozen=True, array_like=True):
    """Where a page ended."""

    queue: str
    state: State
    cursor: str | None = None


def list_jobs(
    queue: str | None, state: State | None, wanted: JobFilter, limit: int, cursor: str | None
) -> Flow[JobPage]:
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidRequest(f"limit must be from 1 to {MAX_LIMIT}")
    if state in ENDED:
        return (yield from _list_ended(queue, state, wanted, limit, cursor))
    states = _IN_QUEUES if state is None else (state,)
    all_queues = _Queues(states)
    place: _Place | None
    if cursor is not None:
        place = _read(cursor)
    elif queue is not None:
        place = _Place(queue, states[0])
    else:
        place = yield from all_queues.first_after("")
    found: list[Message] = []
    while place is not None and len(found) < limit:
        page = yield from _browse(place, wanted, limit - len(found))
        found += page.messages
        if page.next is not None:
            place = replace(place, cursor=page.next)
        elif place.state in states[:-1]:
            place = _Place(place.queue, states[states.index(place.state) + 1])
        elif queue is not None:
            place = None
        else:
            place = yield from all_queues.first_after(place.queue)
    return JobPage(found, None if place is None else msgspec.json.encode(place).decode())


def _browse(place: _Place, wanted: JobFilter, limit: int) -> Flow[browsing.Page]:
    query = Browse(state=place.state, limit=limit, cursor=place.cursor, **wanted)
    try:
        page: browsing.Page = yield Ask(browsing.BROWSE, {"queue": place.queue}, query=query)
    except QueueNotFound:
        return browsing.Page([], None)
    return page


def _list_ended(
    queue: str | None, outcome: State, wanted: JobFilter, limit: int, cursor: str | None
) -> Flow[JobPage]:
    """List ended jobs from history, newest first, without their arguments."""
    query = SearchHistory(queue=queue, outcome=outcome, limit=limit, cursor=cursor, **wanted)
    page: history.History = yield Ask(history.SEARCH, query=query)
    return JobPage([_job_of(ending) for ending in page.endings], page.next)


class _Queues:
    """All queues by name, except those whose counters show that they are empty."""

    def __init__(self, states: Sequence[State]) -> None:
        self._states = states
        self._ahead: deque[str] = deque()

    def first_after(self, name: str) -> Flow[_Place | None]:
        while not self._ahead:
            query = ListQueues(cursor=name or None)
            page: queues.Queues = yield Ask(queues.LIST, query=query)
            if not page.queues:
                return None
            name = page.queues[-1].name
            self._ahead.extend(one.name for one in page.queues if self._has_jobs(one.counts))
        return _Place(self._ahead.popleft(), self._states[0])

    def _has_jobs(self, counts: queues.Counts) -> bool:
        return any(getattr(counts, state) for state in self._states)


def _read(cursor: str) -> _Place:
    try:
        return msgspec.json.decode(cursor, type=_Place)
    except msgspec.DecodeError:
        raise InvalidRequest(f"{cursor!r} is not a cursor of app.jobs.list") from None


def _job_of(ending: Ending) -> Message:
    fields = {name: getattr(ending, name) for name in ending.__struct_fields__}
    return Message(state=fields.pop("outcome"), **fields)
