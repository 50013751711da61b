"""Inspect and control jobs: `app.jobs`, the same on a store and on a server.

Rejections are raised as PenstockErrors; `tx` is the caller's own transaction.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import msgspec
from msgspec.structs import replace

from penstock.api import history, manual_acts, messages, overview, queues
from penstock.api.history import Result
from penstock.api.jobs.steps import MessageSteps
from penstock.api.manual_acts import End, Reschedule
from penstock.api.messages import Acted, Message
from penstock.api.overview import Stats
from penstock.api.queues import Queue, Redrive, Redriven
from penstock.client.channel import Ask, Channel, Flow, run, run_async
from penstock.client.jobs.ends import value_of, wait_for_end
from penstock.client.jobs.handle import Enqueued
from penstock.client.jobs.job_listing import JobCounts, JobPage, list_jobs
from penstock.client.jobs.options import instant
from penstock.client.resources.steps import steps_of
from penstock.client.values.return_value import PLAIN, ReturnValue
from penstock.domain.duration import Duration, as_ms
from penstock.domain.errors import InvalidRequest, QueueNotFound
from penstock.domain.message.lifecycle import State
from penstock.services.queues import CHUNK
from penstock.wiring.broker import steady_clock

if TYPE_CHECKING:
    from penstock.client.app import Penstock

AnyJob = str | Enqueued[Any]  # an id, or the handle that `enqueue` returned


class JobListOptions(TypedDict, total=False):
    """The keyword arguments of `app.jobs.list`."""

    queue: str | None
    kind: str | None
    state: State | str | None
    tag: str | None
    limit: int  # default: 100
    cursor: str | None  # `next` of the previous page


class Jobs:
    """Each method has an async version."""

    def __init__(self, app: Penstock) -> None:
        self._app = app

    def get(self, job: AnyJob) -> Message:
        """Return a job, live or from history while that is kept; raises MessageNotFound."""
        return self._channel.request(messages.GET, id=_id_of(job))

    async def get_async(self, job: AnyJob) -> Message:
        return await self._channel.request_async(messages.GET, id=_id_of(job))

    def steps(self, job: AnyJob) -> MessageSteps:
        """Return the durable steps of a job, and the signals that it waits for."""
        return run(self._channel, steps_of(_id_of(job)))

    async def steps_async(self, job: AnyJob) -> MessageSteps:
        return await run_async(self._channel, steps_of(_id_of(job)))

    def list(self, **wanted: Unpack[JobListOptions]) -> JobPage:
        """Return a page of jobs; without a state, those that have not ended and the dead ones.

        `done` and `cancelled` jobs come from history, newest first and without their arguments.
        """
        return run(self._channel, _list(wanted))

    async def list_async(self, **wanted: Unpack[JobListOptions]) -> JobPage:
        return await run_async(self._channel, _list(wanted))

    def count(self, queue: str | None = None) -> JobCounts:
        """Count jobs by state, in one queue or all; reads counters, so its cost does not grow."""
        return run(self._channel, _count(queue))

    async def count_async(self, queue: str | None = None) -> JobCounts:
        return await run_async(self._channel, _count(queue))

    def cancel(
        self,
        job: AnyJob,
        *,
        reason: str | None = None,
        is_running_ok: bool = True,
        tx: object = None,
    ) -> Acted:
        """Cancel a job; a running one is taken from its worker, which stops it if it can.

        Raises WrongState for a running job unless `is_running_ok`, MessageNotFound if it has ended.
        """
        wanted = End(reason=reason, is_running_ok=is_running_ok)
        channel = self._app.backend_for(tx).channel
        return channel.request(manual_acts.CANCEL, wanted, tx=tx, id=_id_of(job))

    async def cancel_async(
        self,
        job: AnyJob,
        *,
        reason: str | None = None,
        is_running_ok: bool = True,
        tx: object = None,
    ) -> Acted:
        wanted = End(reason=reason, is_running_ok=is_running_ok)
        channel = (await self._app.backend_for_async(tx)).channel
        return await channel.request_async(manual_acts.CANCEL, wanted, tx=tx, id=_id_of(job))

    def reschedule(
        self,
        job: AnyJob,
        *,
        due_at: datetime | None = None,
        delay: Duration | None = None,
        tx: object = None,
    ) -> Acted:
        """Change when a waiting job is due; raises WrongState once it is claimed."""
        wanted = _reschedule(due_at, delay)
        channel = self._app.backend_for(tx).channel
        return channel.request(manual_acts.RESCHEDULE, wanted, tx=tx, id=_id_of(job))

    async def reschedule_async(
        self,
        job: AnyJob,
        *,
        due_at: datetime | None = None,
        delay: Duration | None = None,
        tx: object = None,
    ) -> Acted:
        wanted = _reschedule(due_at, delay)
        channel = (await self._app.backend_for_async(tx)).channel
        return await channel.request_async(manual_acts.RESCHEDULE, wanted, tx=tx, id=_id_of(job))

    def redrive(self, job: AnyJob | None = None, *, queue: str | None = None) -> int:
        """Retry a dead job, or all dead jobs of a queue; returns how many there were."""
        return run(self._channel, _redrive(job, queue))

    async def redrive_async(self, job: AnyJob | None = None, *, queue: str | None = None) -> int:
        return await run_async(self._channel, _redrive(job, queue))

    def wait(self, job: AnyJob, *, timeout: Duration | None = None) -> Message:
        """Wait until a job is done, dead or cancelled (see its `state`).  Raises TimeoutError."""
        return run(self._channel, self._wait(_id_of(job), timeout))

    async def wait_async(
        self,
        job: AnyJob,
        *,
        timeout: Duration | None = None,  # noqa: ASYNC109 (the twin of `wait`)
    ) -> Message:
        channel = (await self._app.backend_for_async(None)).channel
        return await run_async(channel, self._wait(_id_of(job), timeout))

    def result(self, job: AnyJob, *, timeout: Duration | None = None) -> Any:
        """Wait until a job is done, and return what its function returned.

        Of a job that is named by its id: as plain JSON values.  Returns None if the result is not
        kept.  Raises JobFailed if the job is dead or was cancelled, and TimeoutError.
        """
        found = run(self._channel, self._end(_id_of(job), timeout))
        return value_of(found, _returns_of(job))

    async def result_async(
        self,
        job: AnyJob,
        *,
        timeout: Duration | None = None,  # noqa: ASYNC109 (the twin of `result`)
    ) -> Any:
        channel = (await self._app.backend_for_async(None)).channel
        found = await run_async(channel, self._end(_id_of(job), timeout))
        return value_of(found, _returns_of(job))

    def state(self, job: AnyJob) -> State:
        """Its state now; DEAD also while it is in a dead-letter queue."""
        return self._channel.request(history.RESULT, id=_id_of(job)).state

    async def state_async(self, job: AnyJob) -> State:
        channel = (await self._app.backend_for_async(None)).channel
        return (await channel.request_async(history.RESULT, id=_id_of(job))).state

    def _end(self, job_id: str, timeout: Duration | None) -> Flow[Result]:
        return wait_for_end(self._app.backend, steady_clock(), job_id, timeout)

    def _wait(self, job_id: str, timeout: Duration | None) -> Flow[Message]:
        ended = yield from self._end(job_id, timeout)
        found: Message = yield Ask(messages.GET, {"id": job_id})
        return replace(found, state=ended.state)  # dead also in a dead-letter queue

    @property
    def _channel(self) -> Channel:
        return self._app.backend.channel


def _list(wanted: JobListOptions) -> Flow[JobPage]:
    return list_jobs(
        wanted.get("queue"),
        _state(wanted.get("state")),
        {"kind": wanted.get("kind"), "tag": wanted.get("tag")},
        wanted.get("limit", 100),
        wanted.get("cursor"),
    )


def _reschedule(due_at: datetime | None, delay: Duration | None) -> Reschedule:
    if (due_at is None) is (delay is None):
        raise InvalidRequest("reschedule takes either due_at or delay")
    return Reschedule(
        due_at=None if due_at is None else instant("due_at", due_at),
        delay_ms=None if delay is None else as_ms("delay", delay),
    )


def _count(queue: str | None) -> Flow[JobCounts]:
    found: Stats | Queue
    try:
        if queue is None:
            found = yield Ask(overview.STATS)
        else:
            found = yield Ask(queues.GET, {"queue": queue})
    except QueueNotFound:
        return JobCounts()
    return JobCounts(**msgspec.structs.asdict(found.counts), totals=found.totals)


def _redrive(job: AnyJob | None, queue: str | None) -> Flow[int]:
    if (job is None) is (queue is None):
        raise InvalidRequest("redrive takes either a job or queue=")
    if job is not None:
        yield Ask(manual_acts.REDRIVE, {"id": _id_of(job)})
        return 1
    assert queue is not None
    counts = yield from _count(queue)
    # At most the present number: jobs that die again meanwhile wait for the next redrive.
    left, total = counts.dead + counts.ready + counts.waiting, 0
    while left > 0:  # in chunks, so that no request takes long
        body = Redrive(limit=min(left, CHUNK))
        answer: Redriven = yield Ask(queues.REDRIVE, {"queue": queue}, body)
        if not answer.redriven:
            break
        left, total = left - answer.redriven, total + answer.redriven
    return total


def _state(given: State | str | None) -> State | None:
    if given is None:
        return None
    try:
        return State(given)
    except ValueError:
        allowed = ", ".join(State)
        raise InvalidRequest(f"state is one of {allowed}, not {given!r}") from None


def _returns_of(job: AnyJob) -> ReturnValue:
    return job.returns if isinstance(job, Enqueued) else PLAIN


def _id_of(job: AnyJob) -> str:
    if isinstance(job, Enqueued):
        return job.id
    if not isinstance(job, str):
        raise InvalidRequest(
            f"name a job by its id or by the value that enqueue returned, not {job!r}"
        )
    return job
