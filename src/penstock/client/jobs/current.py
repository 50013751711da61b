"""The running job, as its handler sees it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from penstock.client.backend import Backend
from penstock.client.jobs.durable import DurableSteps
from penstock.domain.datetimes import moment_of
from penstock.domain.duration import Duration, as_ms
from penstock.domain.errors import InvalidRequest
from penstock.services.messages import MAX_PROGRESS_CHARS
from penstock.worker.claimed_job import ClaimedJob, LogBuffer

if TYPE_CHECKING:
    from penstock.client.flows.handle import FlowHandle

_current: ContextVar[Current] = ContextVar("penstock_current")


class Current:
    def __init__(
        self,
        job: ClaimedJob,
        backend: Callable[[], Backend],
        flow_of: Callable[[str], FlowHandle],
    ) -> None:
        self._job = job
        self._backend = backend
        self._flow_of = flow_of
        self._is_completed = False
        self.result: object = None

    @property
    def steps(self) -> DurableSteps:
        """Its durable steps; `using(tx=…)` records them in a transaction of the caller."""
        self._refuse_chunk("steps are recorded for")
        found: DurableSteps | None = vars(self).get("_steps")
        if found is None:  # set at once: threads of a handler share it
            found = vars(self).setdefault("_steps", DurableSteps(self._job, self._backend))
        return found

    @property
    def id(self) -> str:
        return self._job.id

    @property
    def queue(self) -> str:
        return self._job.queue

    @property
    def kind(self) -> str | None:
        return self._job.kind

    @property
    def attempts(self) -> int:
        """Attempts so far, including this one."""
        return self._job.attempts

    @property
    def max_attempts(self) -> int | None:
        """The job's own limit; None: the queue's limit applies."""
        return self._job.max_attempts

    @property
    def failures(self) -> int:
        return self._job.failures

    @property
    def group(self) -> str | None:
        return self._job.group

    @property
    def entity_id(self) -> str | None:
        return self._job.entity_id

    @property
    def tags(self) -> tuple[str, ...]:
        return self._job.tags

    @property
    def attributes(self) -> dict[str, str]:
        return self._job.attributes or {}

    @property
    def flow(self) -> FlowHandle:
        """The flow that the job is a member of; raises InvalidRequest if there is none.

        It asks the store for it, once for each use.
        """
        return self._flow_of(self.id)

    @property
    def sent_at(self) -> datetime:
        return moment_of(self._job.sent_at)

    @property
    def deadline(self) -> datetime | None:
        """When the job will be stopped, if it has a time limit."""
        at = self._job.deadline
        return None if at is None else moment_of(at)

    @property
    def is_stopping(self) -> bool:
        """The worker is shutting down: a long job may stop early and return Snooze."""
        return self._job.is_stopping

    @property
    def is_completed(self) -> bool:
        return self._is_completed

    def progress(self, fraction: float | None = None, note: str | None = None) -> None:
        """Report progress to operators; also extends the lease."""
        is_number = isinstance(fraction, int | float) and not isinstance(fraction, bool)
        if fraction is not None and not (is_number and 0 <= fraction <= 1):
            raise InvalidRequest(f"progress is a fraction from 0 to 1, not {fraction!r}")
        if note is not None and not isinstance(note, str):
            raise InvalidRequest(f"note must be text, not {note!r}")
        given = {"fraction": fraction, "note": note}
        fields = {name: value for name, value in given.items() if value is not None}
        progress = msgspec.json.encode(fields).decode()
        if len(progress) > MAX_PROGRESS_CHARS:
            raise InvalidRequest(f"progress has at most {MAX_PROGRESS_CHARS} characters as JSON")
        self._job.extend(progress=progress)

    def extend(self, lease: Duration | None = None) -> None:
        """Extend the lease; the worker does so by itself.  Raises LeaseLost."""
        self._job.extend(lease_ms=None if lease is None else as_ms("lease", lease))

    def complete(self, *, tx: object, result: object = UNSET) -> None:
        """Complete the job if the caller's own transaction commits; raises LeaseLost.

        `result`: what the job returns; what its function returns afterwards is dropped.
        """
        self._refuse_chunk("complete(tx=…) ends")
        text = self._encode(result)
        self._backend().complete(self._job.receipt, tx=tx, result=text)
        self._is_completed = True

    async def complete_async(self, *, tx: object, result: object = UNSET) -> None:
        self._refuse_chunk("complete(tx=…) ends")
        text = self._encode(result)
        await self._backend().complete_async(self._job.receipt, tx=tx, result=text)
        self._is_completed = True

    def _refuse_chunk(self, what: str) -> None:
        if self._job.members:
            raise InvalidRequest(f"this call has many jobs, and {what} one of them: use its Item")

    def _encode(self, result: object) -> str | None:
        handler = self._job.handler
        return None if result is UNSET or handler is None else handler.write_result(result)

    def note_result(self, result: object) -> None:
        self.result = result


def current() -> Current:
    """Return the running job; raises InvalidRequest where no job runs."""
    try:
        return _current.get()
    except LookupError:
        raise InvalidRequest("no job is running here: call current() in a handler") from None


def running_job_label() -> tuple[str, str | None] | None:
    """The id and kind of the running job; None where no job runs."""
    job = _current.get(None)
    return None if job is None else (job.id, job.kind)


def running_job_log() -> LogBuffer | None:
    """The buffer of the running job; None if its log is not kept, or no job runs."""
    job = _current.get(None)
    return None if job is None else job._job.log


class CurrentJob:
    """Makes a job the current one."""

    def __init__(self, job: Current) -> None:
        self._job = job

    def __enter__(self) -> Current:
        self._token = _current.set(self._job)
        return self._job

    def __exit__(self, *_: object) -> None:
        with suppress(ValueError):  # the task was destroyed in another context
            _current.reset(self._token)

    async def __aenter__(self) -> Current:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()
