"""What a worker needs from an application: handlers, a source of jobs, a registry.

The worker does not know the client: the same worker runs on a store in its own process and on a
server.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from enum import Enum, auto
from typing import Protocol

from penstock.domain.circuit.circuit import Permitted, Reported
from penstock.domain.errors import PenstockError
from penstock.domain.worker import NewWorker
from penstock.ports.clock import Clock
from penstock.worker.claimed_job import ClaimedJob, JobAct
from penstock.worker.handler import Handler
from penstock.worker.lifespan import WorkerHooks


class Unanswered(Exception):
    """The store did not answer for this act: send it again."""


ActAnswer = PenstockError | Unanswered | None  # rejected; to be sent again; done


class Running(Protocol):
    """One call of a handler."""

    @property
    def is_completed(self) -> bool:
        """The handler completed its job itself, in a transaction of its own."""
        ...

    def note_result(self, result: object) -> None:
        """Takes what the handler returned; what it raises passes through."""
        ...


class Handlers(Protocol):
    @property
    def kinds(self) -> list[str]: ...
    @property
    def worker_hooks(self) -> WorkerHooks: ...
    def find(self, kind: str) -> Handler | None: ...
    def handler_of(self, job: ClaimedJob) -> Handler | None:
        """By its queue, if that has handlers of its own; otherwise by its kind."""
        ...

    def around(self, job: ClaimedJob) -> AbstractContextManager[Running]:
        """Surrounds each call of a sync handler, on the thread that it runs on."""
        ...

    def around_async(self, job: ClaimedJob) -> AbstractAsyncContextManager[Running]:
        """Surrounds each call of an async handler, in the task that it runs in."""
        ...


class JobSource(Protocol):
    """Where jobs are claimed; safe to share between threads."""

    def claim(
        self,
        queues: Sequence[str],
        *,
        limit: int,
        lease_ms: int,
        worker_id: str,
        finishing: Sequence[JobAct] = (),
    ) -> tuple[list[ClaimedJob], list[ActAnswer]]:
        """Jobs of the queues in their order, and an answer for each act; does not wait.

        Raises only if no act was answered and nothing was claimed.
        """
        ...

    def act(self, acts: Sequence[JobAct]) -> list[ActAnswer]:
        """An answer for each; raises only if no act was answered."""
        ...

    def listen(self, queues: Sequence[str], callback: Callable[[], None]) -> Callable[[], None]:
        """Call back, from any thread, when there may be jobs; returns what ends it.

        A source may begin only after the next claim that returns fewer jobs than its limit.
        """
        ...

    def permits(self, jobs: Mapping[str, str]) -> Mapping[str, Permitted] | None:
        """Whether jobs of these routes may be run now; None: no circuit is watched.

        `jobs`: by route, the id of a claimed job that has it.  A probe is for one job, and is taken
        with this call.
        """
        ...

    def report(self, reports: Sequence[Reported]) -> None:
        """The outcomes of jobs that had a permit."""
        ...


class RegistryStatus(Enum):
    ALIVE = auto()
    DRAINING = auto()  # an operator wants it to end
    UNKNOWN = auto()  # never registered, or given up as lost


class WorkerRegistry(Protocol):
    """Where workers register; safe to share between threads."""

    def register(self) -> str:
        """Returns the worker's id."""
        ...

    def beat(self, worker_id: str) -> RegistryStatus: ...
    def leave(self, worker_id: str) -> None: ...


class Application(ABC):
    """Names in a module that are instances of this class can be run by `penstock worker`."""

    @property
    @abstractmethod
    def clock(self) -> Clock: ...

    @property
    @abstractmethod
    def queues(self) -> list[str]:
        """Those of its handlers and those that it declares."""
        ...

    @property
    @abstractmethod
    def running_job(self) -> Callable[[], tuple[str, str | None] | None]:
        """Returns the id and the kind of the job that runs in the current context."""
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
        """Of the queues that exist, in their order."""
        ...

    @abstractmethod
    def job_source(self) -> JobSource: ...

    @abstractmethod
    def registry(self, about: NewWorker) -> WorkerRegistry: ...

    @abstractmethod
    def start_duties(self) -> None:
        """Run the background duties of a store that has no server beside it."""
        ...

    @abstractmethod
    def close(self) -> None: ...
