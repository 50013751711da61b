"""A claimed job on its way through a worker, and what the worker asks the store to do with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Protocol

import msgspec

from penstock.domain.message.attempt_log import LogLine
from penstock.domain.message.lease import Verb
from penstock.domain.message.retry import Backoff
from penstock.worker.batch import Batch
from penstock.worker.interruption import interrupt

LATE_START_MS = 20  # a shorter wait is not worth an act
_starting = threading.Lock()  # decides once whether a job with a time limit begins
Extend = Callable[["ClaimedJob", int | None, str | None], None]  # lease_ms, progress


class LogBuffer(Protocol):
    """See worker/attempt_log.py."""

    seq: int

    def append(self, line: LogLine) -> None: ...
    def add(self, level: str, source: str, text: str) -> None: ...
    def print(self, stream: str, text: str) -> None: ...
    def end(self) -> None: ...
    def take(self) -> list[LogLine]: ...


class Handler(Protocol):
    """What a worker calls to run a job of one kind."""

    @property
    def kind(self) -> str: ...
    @property
    def is_async(self) -> bool: ...
    @property
    def timeout_ms(self) -> int | None: ...
    @property
    def backoff(self) -> Backoff | None:
        """None: use the queue's back-off."""
        ...

    @property
    def batch(self) -> Batch | None:
        """How its jobs are gathered into chunks; None: each has a call of its own."""
        ...

    @property
    def keeps_logs(self) -> bool:
        """Whether what it logs and prints is kept with the attempt."""
        ...

    @property
    def keeps_result(self) -> bool:
        """Whether what it returns is kept with the history of the job."""
        ...

    def write_result(self, value: object) -> str:
        """Encode what it returned as JSON text; raises InvalidRequest."""
        ...

    def call_with(self, body: str) -> Callable[[], object]:
        """Return the call with its arguments; raises InvalidRequest if the body does not match.

        If the result, or the result of a returned coroutine, is an Outcome, it decides what happens
        to the job; any other result completes it.  For a handler with a batch, the call returns
        the decoded arguments.
        """
        ...


class RunsIn(Enum):
    """Where a job runs."""

    THREAD = auto()
    EVENT_LOOP = auto()  # one loop for all async handlers
    SANDBOX = auto()  # a process of its own, which can be killed and may crash


class StopReason(Enum):
    """Why the result of a job's handler no longer counts."""

    TIMED_OUT = auto()
    LEASE_LOST = auto()
    GIVEN_BACK = auto()  # the worker is shutting down, and has released the job


class JobMessage(msgspec.Struct, kw_only=True, eq=False):
    """What a claim returns; this part of a job is also sent to sandboxes."""

    id: str
    queue: str
    receipt: str
    body: str  # JSON text
    sent_at: int
    leased_until: int
    attempts: int = 1  # including this one
    failures: int = 0
    crashes: int = 0  # worker processes that crashed while running it
    max_attempts: int | None = None  # the job's own; None: the queue's
    timeout_ms: int | None = None
    kind: str | None = None
    entity_id: str | None = None
    tags: tuple[str, ...] = ()
    group: str | None = None
    priority: int = 0
    attributes: dict[str, str] | None = None
    trace: str | None = None
    route: str | None = None  # the worker asks its circuit before running the job
    deadline: int | None = None  # when the job will be stopped; set when it begins
    lease_no: int = 1  # grows with each claim


class JobAct(msgspec.Struct, frozen=True, kw_only=True):
    """What the lease holder asks the store to do with the message."""

    receipt: str
    verb: Verb
    delay_ms: int | None = None  # fail: own back-off; release, snooze: delay; extend: new lease
    text: str | None = None  # fail: the error; bury, cancel: the reason; crash: known details
    progress: str | None = None  # extend: as JSON text
    is_start: bool = False  # extend: handling begins only now, and the time limit counts from now
    signal: str | None = None  # snooze: due as soon as this signal arrives
    queue: str | None = None  # complete: where the message is; the act may go with a claim from it
    result: str | None = None  # complete: JSON text, if the result is kept


def _ignore(job: ClaimedJob, lease_ms: int | None, progress: str | None) -> None:
    pass


class ClaimedJob(JobMessage, kw_only=True, eq=False):
    """One record from the claim to the act that ends it, to keep objects per job few.

    The source creates it, `handling.prepare` finds its handler, the pump gives it a place.
    """

    handler: Handler | None = None
    call: Callable[[], object] | None = None  # the handler with its arguments
    runs_in: RunsIn = RunsIn.THREAD
    place: int = -1  # in the table that outlives this process; -1: none
    time_limit_ms: int | None = None  # the job's own, or its handler's
    lease_ms: int = 0
    taken_at: int = 0
    renewed_at: int = 0  # when its lease was last extended
    started_at: int = 0  # 0: not begun
    stop_reason: StopReason | None = None
    has_slot: bool = False  # the slot in which it waits for a sandbox
    is_stopping: bool = False  # the worker is shutting down; a long job may stop early
    is_late_start: bool = False  # it waited for a slot, so its time limit must count from now
    progress: str | None = None
    on_extend: Extend = _ignore
    thread_id: int = 0  # the thread that is in its sync handler; 0: none
    stop_handler: Callable[[], None] | None = None  # set where the handler can be stopped
    force_stop: Callable[[], None] | None = None  # set where it can be killed if it does not stop
    request_stop: Callable[[], None] | None = None  # set where the handler cannot see `is_stopping`
    log: LogBuffer | None = None  # of a handler whose logs are kept
    members: Sequence[ClaimedJob] = ()  # of a chunk: the jobs that its handler gets in one call

    @property
    def message(self) -> JobMessage:
        """The part of the job that a sandbox needs."""
        return JobMessage(**{name: getattr(self, name) for name in JobMessage.__struct_fields__})

    def begin(self, now: int) -> bool:
        """Mark it as begun; False if it was given back in the meantime."""
        if self.time_limit_ms is None:
            self.started_at = now
            return self.stop_reason is None
        with _starting:
            if self.stop_reason is not None:
                return False
            self.started_at = now
        self.deadline = now + self.time_limit_ms
        self.is_late_start = now - self.taken_at > LATE_START_MS
        return True

    @property
    def start_by(self) -> int | None:
        """When a job that has not begun is given back, so that it does not time out unstarted.

        A job that has a slot runs as soon as a sandbox has started.  It can wait until its lease
        needs an extension, because an extension past the time limit would time the job out.
        """
        if self.started_at or self.time_limit_ms is None or self.stop_reason is not None:
            return None
        wait_ms = self.time_limit_ms // 2
        return self.taken_at + (max(wait_ms, self.lease_ms // 3) if self.has_slot else wait_ms)

    def take_slot(self) -> None:
        self.has_slot = True

    def give_up(self) -> bool:
        """Keep it from beginning; False if it has begun already."""
        with _starting:
            if not self.started_at and self.stop_reason is None:
                self.stop_reason = StopReason.GIVEN_BACK
                return True
        return False

    @property
    def owes_timeout(self) -> bool:
        """It was stopped at its limit; that is reported when it ends, or at once for a thread."""
        return self.stop_reason is StopReason.TIMED_OUT and self.runs_in is not RunsIn.THREAD

    def ask_to_stop(self) -> None:
        self.is_stopping = True
        if self.request_stop is not None:
            self.request_stop()

    def stop(self, reason: StopReason) -> None:
        """Discard its result, and stop it.

        A job that lost its lease may clean up first; `force` ends it if it does not stop.
        """
        self.stop_reason = self.stop_reason or reason
        self.ask_to_stop()
        if reason is not StopReason.LEASE_LOST and self.force_stop is not None:
            self.force_stop()
        elif self.stop_handler is not None:
            self.stop_handler()
        else:
            interrupt(self)

    def force(self) -> None:
        if self.force_stop is not None:
            self.force_stop()

    def extend(self, *, lease_ms: int | None = None, progress: str | None = None) -> None:
        """Extend the lease; called on the handler's thread or loop.  Raises LeaseLost."""
        self.on_extend(self, lease_ms, progress)
