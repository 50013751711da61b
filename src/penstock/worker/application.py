"""What a worker needs from an application: handlers, a job source and a registry.

The worker does not import the client: the same worker code runs against an in-process store and
against a server.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from enum import Enum, auto
from typing import Protocol

from penstock.api.jobs.attempt_logs import LogPart
from penstock.domain.circuit.circuit import OutcomeReport, PermitAnswer
from penstock.domain.errors import PenstockError
from penstock.domain.worker import NewWorker
from penstock.ports.clock import Clock
from penstock.worker.chunk import Chunk
from penstock.worker.claimed_job import ClaimedJob, Handler, JobAct, LogBuffer
from penstock.worker.slots.lifespan import WorkerHooks


class Unanswered(Exception):
    """The store did not answer this act; send it again."""


ActAnswer = PenstockError | Unanswered | None  # rejected; unanswered, so send it again; done


class Running(Protocol):
    """One call of a handler."""

    @property
    def is_completed(self) -> bool:
        """Whether the handler completed its own job, in a transaction of its own."""
        ...

    def note_result(self, result: object) -> None:
        """Record what the handler returned; exceptions from the handler pass through."""
        ...


class Handlers(Protocol):
    @property
    def kinds(self) -> list[str]: ...
    @property
    def worker_hooks(self) -> WorkerHooks: ...
    @property
    def chunk_queues(self) -> frozenset[str]:
        """Queues whose only handler gets chunks by group."""
        ...

    def find(self, kind: str) -> Handler | None: ...
    def handler_of(self, job: ClaimedJob) -> Handler | None:
        """Look up the handler by queue if the queue has its own handlers, otherwise by kind."""
        ...

    def bind_chunk(self, chunk: Chunk) -> Callable[[], object]:
        """Return the call for its `left` members, and set its `items`."""
        ...

    def around(self, job: ClaimedJob) -> AbstractContextManager[Running]:
        """Wrap each call of a sync handler, on the thread that runs it."""
        ...

    def around_async(self, job: ClaimedJob) -> AbstractAsyncContextManager[Running]:
        """Wrap each call of an async handler, in the task that runs it."""
        ...


class JobSource(Protocol):
    """Where a worker claims jobs; safe to share between threads."""

    def claim(
        self,
        queues: Sequence[str],
        *,
        limit: int,
        lease_ms: int,
        worker_id: str,
        finishing: Sequence[JobAct] = (),
        in_a_row: Collection[str] = (),
    ) -> tuple[list[ClaimedJob], list[ActAnswer]]:
        """Claim jobs from the queues in order, and answer each act; does not wait for jobs.

        `in_a_row`: of these queues, if they are ordered by group, all ready jobs of a group.

        Raises only if no act was answered and no job was claimed.
        """
        ...

    def act(self, acts: Sequence[JobAct]) -> list[ActAnswer]:
        """Return an answer for each act; raises only if no act was answered."""
        ...

    def listen(self, queues: Sequence[str], callback: Callable[[], None]) -> Callable[[], None]:
        """Call back, from any thread, when there may be jobs; returns a function that stops it.

        A source may start only after the next claim that returns fewer jobs than its limit.
        """
        ...

    def permits(self, jobs: Mapping[str, str]) -> Mapping[str, PermitAnswer] | None:
        """Return whether jobs of these routes may run now; None if no circuit is watched.

        `jobs` maps each route to the id of a claimed job that names it.  A probe permit is for one
        job, and this call consumes it.
        """
        ...

    def keep_logs(self, parts: Sequence[LogPart]) -> list[str]:
        """Keep what jobs have logged; returns `kept`, or the code of an error, for each part."""
        ...

    def report(self, reports: Sequence[OutcomeReport]) -> None:
        """Report the outcomes of jobs that had a permit."""
        ...


class RegistryStatus(Enum):
    ALIVE = auto()
    DRAINING = auto()  # an operator has asked it to drain
    UNKNOWN = auto()  # never registered, or given up as lost


class WorkerRegistry(Protocol):
    """Where workers register; safe to share between threads."""

    def register(self) -> str:
        """Register a worker and return its id."""
        ...

    def beat(self, worker_id: str) -> RegistryStatus: ...
    def leave(self, worker_id: str) -> None: ...


class Application(ABC):
    """An application that `penstock worker` can run, if a module has one as a global name."""

    url: str  # of its store or server

    @property
    @abstractmethod
    def clock(self) -> Clock: ...

    @property
    @abstractmethod
    def queues(self) -> list[str]:
        """The queues of its handlers and the queues that it declares."""
        ...

    @property
    @abstractmethod
    def worker_queues(self) -> list[str]:
        """The queues that its workers claim from if they name none."""
        ...

    @property
    @abstractmethod
    def running_job(self) -> Callable[[], tuple[str, str | None] | None]:
        """Return the id and kind of the job that runs in the current context."""
        ...

    @property
    @abstractmethod
    def running_log(self) -> Callable[[], LogBuffer | None]:
        """Return the buffer of the job that runs in the current context, if its log is kept."""
        ...

    @property
    @abstractmethod
    def job_handlers(self) -> Handlers: ...

    @abstractmethod
    def use(self, url: str, *, key: str | None = None) -> None:
        """Switch to another store or server."""
        ...

    @abstractmethod
    def queue_names(self, *, prefix: str, limit: int) -> list[str]:
        """Return the names of the existing queues, in order."""
        ...

    @abstractmethod
    def job_source(self) -> JobSource: ...

    @abstractmethod
    def registry(self, about: NewWorker) -> WorkerRegistry: ...

    @abstractmethod
    def start_duties(self) -> None:
        """Run the background duties of the store, for one that no server serves."""
        ...

    @abstractmethod
    def close(self) -> None: ...
