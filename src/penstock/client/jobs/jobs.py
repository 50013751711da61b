"""Looking at jobs and steering them: `app.jobs`, the same over a store and over a server.

Refusals are raised as PenstockErrors; `tx` is the caller's own transaction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec.structs import replace

from penstock.api.messages import Acted, Message
from penstock.client.jobs.job import Enqueued
from penstock.client.jobs.job_records import JobCounts, JobPage
from penstock.client.jobs.job_requests import (
    ActOnJob,
    BrowseJobs,
    CountJobs,
    EndedJobs,
    GetJob,
    RedriveSome,
    SomeQueues,
    Which,
)
from penstock.client.jobs.options import instant
from penstock.client.request_chain import Flow, Pause, Read, run, run_async
from penstock.client.request_kinds import Ask, ask, ask_async
from penstock.domain.duration import Duration, as_ms
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.lifecycle import State
from penstock.domain.message.selection import BulkAct, BulkOrder

if TYPE_CHECKING:
    from penstock.client.app import Penstock

T = TypeVar("T")
AnyJob = str | Enqueued  # an id, or what `enqueue` has returned
MAX_LIMIT = 1_000
_ENDED = (State.DONE, State.CANCELLED)  # found in history only
_IN_QUEUES = (State.LEASED, State.READY, State.WAITING, State.DEAD)
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0


class _Place(msgspec.Struct, frozen=True, array_like=True):
    """Where a page of `list` ended."""

    queue: str
    state: State
    cursor: str | None = None


class Jobs:
    """Each method has an async twin."""

    def __init__(self, app: Penstock) -> None:
        self._app = app

    def get(self, job: AnyJob) -> Message:
        """Live, or from history as long as that is kept; raises MessageNotFound."""
        return run(self._app.backing, _look(GetJob(_id_of(job))))

    async def get_async(self, job: AnyJob) -> Message:
        return await run_async(self._app.backing, _look(GetJob(_id_of(job))))

    def list(
        self,
        *,
        queue: str | None = None,
        kind: str | None = None,
        state: State | str | None = None,
        tag: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> JobPage:
        """A page of jobs; without a state those that have not ended, and the dead.

        `done` and `cancelled` ones come from history, newest first and without their arguments.
        """
        flow = listing_of(queue, _state(state), Which(kind=kind, tag=tag), limit, cursor)
        return run(self._app.backing, flow)

    async def list_async(
        self,
        *,
        queue: str | None = None,
        kind: str | None = None,
        state: State | str | None = None,
        tag: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> JobPage:
        flow = listing_of(queue, _state(state), Which(kind=kind, tag=tag), limit, cursor)
        return await run_async(self._app.backing, flow)

    def count(self, queue: str | None = None) -> JobCounts:
        """By state, of a queue or of all; from counters, so it costs the same for any number."""
        return run(self._app.backing, _look(CountJobs(queue)))

    async def count_async(self, queue: str | None = None) -> JobCounts:
        return await run_async(self._app.backing, _look(CountJobs(queue)))

    def cancel(
        self,
        job: AnyJob,
        *,
        reason: str | None = None,
        is_running_ok: bool = True,
        tx: object = None,
    ) -> Acted:
        """It will not be run; a running one is taken from its worker, which stops it if it can.

        Raises WrongState for a running one unless `is_running_ok`, MessageNotFound if it has ended.
        """
        return ask(self._app.backing, _cancel(job, reason, is_running_ok), tx)

    async def cancel_async(
        self,
        job: AnyJob,
        *,
        reason: str | None = None,
        is_running_ok: bool = True,
        tx: object = None,
    ) -> Acted:
        return await ask_async(self._app.backing, _cancel(job, reason, is_running_ok), tx)

    def reschedule(
        self,
        job: AnyJob,
        *,
        due_at: datetime | None = None,
        delay: Duration | None = None,
        tx: object = None,
    ) -> Acted:
        """Another due date while it waits; raises WrongState once it is claimed."""
        return ask(self._app.backing, self._reschedule(job, due_at, delay), tx)

    async def reschedule_async(
        self,
        job: AnyJob,
        *,
        due_at: datetime | None = None,
        delay: Duration | None = None,
        tx: object = None,
    ) -> Acted:
        return await ask_async(self._app.backing, self._reschedule(job, due_at, delay), tx)

    def redrive(self, job: AnyJob | None = None, *, queue: str | None = None) -> int:
        """Give a dead job, or all dead ones of a queue, a new life; how many they were."""
        return run(self._app.backing, _redrive(job, queue))

    async def redrive_async(self, job: AnyJob | None = None, *, queue: str | None = None) -> int:
        return await run_async(self._app.backing, _redrive(job, queue))

    def wait(self, job: AnyJob, *, timeout: Duration | None = None) -> Message:
        """Until it is done, dead or cancelled: its `state` says which.  Raises TimeoutError.

        It looks after 50 ms, then less and less often, at least once a second.
        """
        return run(self._app.backing, _wait(_id_of(job), timeout))

    async def wait_async(
        self,
        job: AnyJob,
        *,
        timeout: Duration | None = None,  # noqa: ASYNC109 (the twin of `wait`)
    ) -> Message:
        return await run_async(self._app.backing, _wait(_id_of(job), timeout))

    def _reschedule(self, job: AnyJob, due_at: datetime | None, delay: Duration | None) -> ActOnJob:
        if (due_at is None) is (delay is None):
            raise InvalidRequest("reschedule takes due_at or delay, one of them")
        if due_at is not None:
            at = instant("due_at", due_at)
        else:
            at = self._app.clock.now() + as_ms("delay", delay or "")
        return ActOnJob(_id_of(job), BulkOrder(act=BulkAct.RESCHEDULE, due_at=at))


def _look(what: Ask[T]) -> Flow[T]:
    found: T = yield Read(what)
    return found


def _cancel(job: AnyJob, reason: str | None, is_running_ok: bool) -> ActOnJob:
    order = BulkOrder(act=BulkAct.CANCEL, reason=reason, is_running_ok=is_running_ok)
    return ActOnJob(_id_of(job), order)


def _redrive(job: AnyJob | None, queue: str | None) -> Flow[int]:
    if (job is None) is (queue is None):
        raise InvalidRequest("redrive takes a job or queue=, one of them")
    if job is not None:
        yield ActOnJob(_id_of(job), BulkOrder(act=BulkAct.REDRIVE))
        return 1
    assert queue is not None
    counts: JobCounts = yield Read(CountJobs(queue))
    # At most what is there now: jobs that die again meanwhile wait for the next redrive.
    left, total = counts.dead + counts.ready + counts.waiting, 0
    while left > 0:
        done: int = yield RedriveSome(queue, limit=left)
        if not done:
            break
        left, total = left - done, total + done
    return total


def _wait(job_id: str, timeout: Duration | None) -> Flow[Message]:
    left_s = None if timeout is None else as_ms("timeout", timeout) / 1000
    pause_s = _FIRST_PAUSE_S
    while True:
        found: Message = yield Read(GetJob(job_id))
        if found.dead_from is not None:  # it died, and stands in a dead-letter queue since
            return replace(found, state=State.DEAD)
        if found.state in (*_ENDED, State.DEAD):
            return found
        if left_s is not None:
            if left_s <= 0:
                raise TimeoutError(f"job {job_id} is still {found.state}")
            pause_s = min(pause_s, left_s)
            left_s -= pause_s
        yield Pause(pause_s)
        pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)


def listing_of(
    queue: str | None, state: State | None, which: Which, limit: int, cursor: str | None
) -> Flow[JobPage]:
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidRequest(f"limit must be from 1 to {MAX_LIMIT}")
    page: JobPage
    if state in _ENDED:
        page = yield Read(EndedJobs(queue, state, which, limit=limit, cursor=cursor))
        return page
    states = _IN_QUEUES if state is None else (state,)
    queues = _Queues(states)
    place: _Place | None
    if cursor is not None:
        place = _read(cursor)
    elif queue is not None:
        place = _Place(queue, states[0])
    else:
        place = yield from queues.first_after("")
    found: list[Message] = []
    while place is not None and len(found) < limit:
        room = limit - len(found)
        page = yield Read(
            BrowseJobs(place.queue, place.state, which, limit=room, cursor=place.cursor)
        )
        found += page.jobs
        if page.next is not None:
            place = replace(place, cursor=page.next)
        elif place.state in states[:-1]:
            place = _Place(place.queue, states[states.index(place.state) + 1])
        elif queue is not None:
            place = None
        else:
            place = yield from queues.first_after(place.queue)
    return JobPage(found, None if place is None else msgspec.json.encode(place).decode())


class _Queues:
    """All queues by name, without those whose counters say that they are empty."""

    def __init__(self, states: Sequence[State]) -> None:
        self._states = states
        self._ahead: deque[str] = deque()

    def first_after(self, name: str) -> Flow[_Place | None]:
        while not self._ahead:
            some: list[tuple[str, JobCounts]] = yield Read(SomeQueues(name))
            if not some:
                return None
            name = some[-1][0]
            self._ahead.extend(queue for queue, counts in some if self._has_jobs(counts))
        return _Place(self._ahead.popleft(), self._states[0])

    def _has_jobs(self, counts: JobCounts) -> bool:
        return any(getattr(counts, state) for state in self._states)


def _read(cursor: str) -> _Place:
    try:
        return msgspec.json.decode(cursor, type=_Place)
    except msgspec.DecodeError:
        raise InvalidRequest(f"{cursor!r} is not a cursor of app.jobs.list") from None


def _state(given: State | str | None) -> State | None:
    if given is None:
        return None
    try:
        return State(given)
    except ValueError:
        allowed = ", ".join(State)
        raise InvalidRequest(f"state is one of {allowed}, not {given!r}") from None


def _id_of(job: AnyJob) -> str:
    if isinstance(job, Enqueued):
        return job.id
    if not isinstance(job, str):
        raise InvalidRequest(f"a job is named by its id or by what enqueue returned, not {job!r}")
    return job
