"""The job API: `app = Penstock(url)`, `@app.job()`, `job.enqueue(…)`.

The API is the same on an in-process store (sqlite:///…, postgresql://…) and on a server (http://…).
Nothing is opened before it is needed, so importing a module that creates an app opens nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, overload

import msgspec

from penstock.api.messages import Sent
from penstock.client import application_name as naming
from penstock.client.backend import Backend
from penstock.client.bus.bus import BusMixin
from penstock.client.bus.notifications import NotificationQueue
from penstock.client.connection import ConnectionMixin
from penstock.client.declared_queues import DeclaredQueues, QueueOptions, settings_of
from penstock.client.flows.mixin import FlowMixin
from penstock.client.jobs import recurring, tracing
from penstock.client.jobs.chunk_job import ChunkDecorator, job_class
from penstock.client.jobs.current import Current, running_job_label, running_job_log
from penstock.client.jobs.handle import Enqueued, handles_of
from penstock.client.jobs.handlers import JobHandlers, check_worker_hook
from penstock.client.jobs.job import Job
from penstock.client.jobs.job_spec import JobSettings, resolve, spec_of
from penstock.client.jobs.jobs import Jobs
from penstock.client.jobs.options import JobOptions, ResolvedOptions
from penstock.client.jobs.recurring import RecurringWork
from penstock.client.jobs.signals import SignalMixin
from penstock.client.registry import ChannelRegistry, RetiringRegistry
from penstock.client.resources.circuits import CircuitClient
from penstock.client.resources.queues import QueueClient
from penstock.client.resources.recurring import RecurringClient
from penstock.client.sending import batches, check_sent, draft_by_kind, with_trace
from penstock.client.values.return_value import PLAIN, ReturnValue
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.errors import PenstockError
from penstock.domain.limits import DEFAULT_LIMITS
from penstock.domain.message.draft import Draft
from penstock.domain.queue.queue import check_name
from penstock.domain.schedule.schedule import owner_labels
from penstock.domain.worker import NewWorker
from penstock.ports.clock import Clock
from penstock.worker.application import Application, JobSource, WorkerRegistry
from penstock.worker.batch import Batch
from penstock.worker.claimed_job import LogBuffer

if TYPE_CHECKING:
    from penstock.worker.assignment import WorkerOptions
    from penstock.worker.worker import JobWorker

P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H", bound=Callable[[Current], Any])
W = TypeVar("W", bound=Callable[[], Any])


class Penstock(ConnectionMixin, BusMixin, FlowMixin, SignalMixin, Application):
    """Safe to share between threads; a forked child opens its own backend.

    `settings`, such as `{"limits.max_body_bytes": "20MiB"}`, override environment and config file.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        clock: Clock | None = None,
        settings: Mapping[str, object] | None = None,
        name: str | None = None,
    ) -> None:
        """`name`: the owner of recurring work; by default the module that creates the app."""
        super().__init__(url, key=key, clock=clock, settings=settings or {})
        self._module = naming.caller(1)
        self._name = name
        if name is None:
            naming.note(self, self._module)
        self._declared = DeclaredQueues()
        self.recurring = RecurringWork(self)
        self.handlers = JobHandlers(self._lazy_backend.get, self.flow_of_job)

    # --- jobs ---

    @overload
    def job(self, function: Callable[P, R], /) -> Job[P, R]: ...

    @overload
    def job(self, *, batch: Batch, **about: Unpack[JobSettings]) -> ChunkDecorator: ...

    @overload
    def job(self, **about: Unpack[JobSettings]) -> Callable[[Callable[P, R]], Job[P, R]]: ...

    def job(self, function: Callable[..., Any] | None = None, **given: Any) -> Any:
        """Turn a function into a job.  Raises InvalidRequest if it cannot be one."""
        batch = given.pop("batch", None)
        about: JobSettings = given  # type: ignore[assignment]
        resolved = resolve(about)

        def decorate(function: Callable[..., Any]) -> Job[..., Any]:
            job = job_class(batch)(function, self, spec_of(function, about, batch), resolved)
            self.handlers.add(job)
            self._declared.add_window(job)
            return job

        return decorate if function is None else decorate(function)

    @property
    def jobs(self) -> Jobs:
        """Inspect and control enqueued jobs; the jobs declared here are in `handlers.jobs`."""
        return Jobs(self)

    def around(self, hook: H) -> H:
        """Wrap every handler call: takes a generator that yields once, or a context manager.

        Async hooks wrap async handlers only.  Raises InvalidRequest for other functions.
        """
        self.handlers.add_hook(hook)
        return hook

    def on_worker_start(self, hook: W) -> W:
        """Call a function, sync or async, in each process that runs jobs, before its first job."""
        check_worker_hook(hook, "@app.on_worker_start")
        self.handlers.worker_hooks.starting.append(hook)
        return hook

    def on_worker_stop(self, hook: W) -> W:
        """Call a function, sync or async, in each process that runs jobs, after its last job."""
        check_worker_hook(hook, "@app.on_worker_stop")
        self.handlers.worker_hooks.stopping.append(hook)
        return hook

    def enqueue(
        self, kind: str, arguments: Mapping[str, object], **options: Unpack[JobOptions]
    ) -> Enqueued[Any]:
        """Enqueue by kind.  If the kind is declared here, the arguments are checked."""
        resolved, draft = self._named(kind, arguments, options)
        return self.put(resolved, [draft], self.handlers.returns_of(kind))[0]

    async def enqueue_async(
        self, kind: str, arguments: Mapping[str, object], **options: Unpack[JobOptions]
    ) -> Enqueued[Any]:
        resolved, draft = self._named(kind, arguments, options)
        return (await self.put_async(resolved, [draft], self.handlers.returns_of(kind)))[0]

    # --- queues ---

    def queue(self, name: str, **options: Unpack[QueueOptions]) -> None:
        """Declare a queue's settings, to be applied at its first use here; see docs/jobs.md."""
        self._declared.add(name, settings_of(name, options))

    def declared(self, backend: Backend, queue: str) -> Mapping[str, Any]:
        """Return the settings that this application declares for a queue; raises InvalidRequest."""
        return self._declared.checked(backend, queue)

    def queue_at_least(self, name: str, *, max_attempts: int | None) -> None:
        """Raise the queue's declared or default attempt limit; never lowers it."""
        if max_attempts is not None:
            self._declared.raise_attempts(name, max_attempts)

    def notifications(self, queue: str, **options: Unpack[QueueOptions]) -> NotificationQueue:
        """Messages due at a set time, in one queue; see docs/notifications.md."""
        if options:
            self.queue(queue, **options)
        return NotificationQueue(self, check_name(queue))

    def breaker(self, route: str | None = None, /, **changes: object) -> BreakerSettings:
        """Change `BreakerSettings` of all circuits, or of a route's; see docs/circuits.md."""
        circuits = CircuitClient(self._lazy_backend.get().channel)
        if route is None:
            return circuits.change_settings(changes)
        return circuits.change_own_settings(changes, route=route).settings

    # --- for workers ---

    @property
    def name(self) -> str | None:
        """None if its module creates several applications and this one was not named."""
        if self._name is None and naming.is_ambiguous(self._module):
            return None
        return self._name or self._module

    @property
    def job_handlers(self) -> JobHandlers:
        return self.handlers

    @property
    def running_job(self) -> Callable[[], tuple[str, str | None] | None]:
        return running_job_label

    @property
    def running_log(self) -> Callable[[], LogBuffer | None]:
        return running_job_log

    @property
    def queues(self) -> list[str]:
        """The queues of its jobs and the queues that it declares."""
        return sorted({*self._declared, *self.handlers.queues})

    @property
    def worker_queues(self) -> list[str]:
        """Of these queues the ones that workers claim from: dead letters wait for a redrive."""
        unhandled = self._declared.dead_letter_queues.difference(self.handlers.queues)
        return [name for name in self.queues if name not in unhandled]

    def queue_names(self, *, prefix: str, limit: int) -> list[str]:
        page = QueueClient(self._lazy_backend.get().channel).page(prefix=prefix, limit=limit)
        return [queue.name for queue in page.queues]

    def job_source(self) -> JobSource:
        """Where a worker claims jobs; creates missing queues and declares recurring work."""
        self._subscribe_all(backend := self._lazy_backend.get())
        for name in self.queues:
            self._apply_declared(backend, name)
        for recurrence in self.recurring.declared:
            recurring.declare(backend.channel, recurrence, owner=self.name)
        return self._with_own(backend.source())

    def registry(self, about: NewWorker) -> WorkerRegistry:
        """Where a worker registers; retires recurring work that is no longer declared."""
        channel, owner = self._lazy_backend.get().channel, self.name
        if owner is None:
            return ChannelRegistry(channel, about)
        declared = frozenset(recurrence.name for recurrence in self.recurring.declared)
        labels = about.labels | owner_labels(owner, declared)
        registry = ChannelRegistry(channel, msgspec.structs.replace(about, labels=labels))
        retire = RecurringClient(channel).retire
        return RetiringRegistry(registry, lambda: retire(owner, declared), owner=owner)

    def worker(self, **options: Unpack[WorkerOptions]) -> JobWorker:
        """A worker in this process, see docs/workers.md: `run()` it in any thread."""
        from penstock.worker.worker import in_process

        return in_process(self, **options)

    def run_worker(self, **options: Unpack[WorkerOptions]) -> None:
        """Run such a worker here until Ctrl-C, together with the duties of a local store."""
        worker = self.worker(**options)
        self.start_duties()
        try:
            worker.run()
        except KeyboardInterrupt:
            worker.drain()
            worker.run()

    def start_duties(self) -> None:
        """Run the background duties of a local store that no server serves."""
        self._lazy_backend.get().start_duties()

    # --- the outbox ---

    def put(
        self, resolved: ResolvedOptions, drafts: Sequence[Draft], returns: ReturnValue = PLAIN
    ) -> list[Enqueued[Any]]:
        queue, tx = resolved.queue, resolved.tx
        backend = self.backend_for(tx)
        settings: Mapping[str, Any] = {}
        if tx is not None:
            settings = self._declared.checked(backend, queue)
        elif queue in self._declared:
            self._declared.apply(backend, queue)
        answers: list[Sent | PenstockError] = []
        with tracing.producing(queue, drafts) as span:
            for some in batches(with_trace(drafts, span.trace), most=DEFAULT_LIMITS.max_batch):
                answers += backend.send(queue, some, tx=tx, settings=settings)
            sent = check_sent(answers)
            span.sent([one.id for one in sent])
        return handles_of(sent, self.jobs, returns)

    async def put_async(
        self, resolved: ResolvedOptions, drafts: Sequence[Draft], returns: ReturnValue = PLAIN
    ) -> list[Enqueued[Any]]:
        queue, tx = resolved.queue, resolved.tx
        backend = await self.backend_for_async(tx)
        settings: Mapping[str, Any] = {}
        if tx is not None:
            settings = self._declared.checked(backend, queue)
        elif queue in self._declared:
            await self._declared.apply_async(backend, queue)
        answers: list[Sent | PenstockError] = []
        with tracing.producing(queue, drafts) as span:
            for some in batches(with_trace(drafts, span.trace), most=DEFAULT_LIMITS.max_batch):
                answers += await backend.send_async(queue, some, tx=tx, settings=settings)
            sent = check_sent(answers)
            span.sent([one.id for one in sent])
        return handles_of(sent, self.jobs, returns)

    def _apply_declared(self, backend: Backend, queue: str) -> None:
        self._declared.apply(backend, queue)

    def _named(
        self, kind: str, arguments: Mapping[str, object], options: JobOptions
    ) -> tuple[ResolvedOptions, Draft]:
        job = self.handlers.find(kind)
        if job is not None:
            return job.named(arguments, options)
        return draft_by_kind(kind, arguments, options)
