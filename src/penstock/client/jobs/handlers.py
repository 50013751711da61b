"""The handlers of an application, and the hooks around each call and each worker process."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.client.backend import Backend
from penstock.client.bus.listener import QueueListener
from penstock.client.jobs import tracing
from penstock.client.jobs.chunk_job import ChunkJob
from penstock.client.jobs.current import Current, CurrentJob
from penstock.client.jobs.item import Item
from penstock.client.jobs.job import Job
from penstock.client.values.return_value import PLAIN, ReturnValue
from penstock.domain.bus.topic import NODE_QUEUE_SEPARATOR
from penstock.domain.errors import InvalidRequest
from penstock.worker.application import Running
from penstock.worker.chunk import Chunk
from penstock.worker.claimed_job import ClaimedJob, Handler
from penstock.worker.slots.lifespan import WorkerHooks

if TYPE_CHECKING:
    from penstock.client.flows.handle import FlowHandle


class AroundHook(msgspec.Struct, frozen=True):
    """A function decorated with `@app.around`."""

    name: str
    enter: Callable[[Current], Any]
    is_async: bool

    def sync(self, job: Current) -> AbstractContextManager[Any]:
        made = self.enter(job)
        if isinstance(made, AbstractContextManager):
            return made
        raise self._unfit(made)

    def asynchronous(self, job: Current) -> AbstractAsyncContextManager[Any]:
        made = self.enter(job)
        if isinstance(made, AbstractAsyncContextManager):
            return made
        raise self._unfit(made)

    def _unfit(self, made: object) -> TypeError:
        return TypeError(f"the hook {self.name!r} returned {made!r}, not a context manager")


def around_hook(function: Callable[[Current], Any]) -> AroundHook:
    """Raises InvalidRequest if the function cannot wrap jobs."""
    name = _name(function)
    if not callable(function):
        raise InvalidRequest(f"@app.around takes a function, not {function!r}")
    _check_arguments(function, "@app.around", name, "the running job", object())
    if inspect.iscoroutinefunction(function):
        raise InvalidRequest(
            f"@app.around: {name!r} is a coroutine function; a hook yields once: "
            "write it as an async generator, with `yield` where the job runs"
        )
    if inspect.isasyncgenfunction(function):
        return AroundHook(name, asynccontextmanager(function), is_async=True)
    if inspect.isgeneratorfunction(function):
        return AroundHook(name, contextmanager(function), is_async=False)
    if isinstance(function, type):
        is_async = hasattr(function, "__aenter__") and not hasattr(function, "__enter__")
        return AroundHook(name, function, is_async)
    # A function decorated with @asynccontextmanager or similar, or one that returns a manager.
    return AroundHook(name, function, inspect.isasyncgenfunction(inspect.unwrap(function)))


def check_worker_hook(function: Callable[[], object], place: str) -> None:
    """Raises InvalidRequest if it cannot be called when a worker starts or stops."""
    name = _name(function)
    if not callable(function):
        raise InvalidRequest(f"{place} takes a function, not {function!r}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidRequest(
            f"{place}: {name!r} is a generator; a hook returns once; use @app.on_worker_stop "
            "for what runs after the jobs"
        )
    _check_arguments(function, place, name, "no arguments")


def _check_arguments(
    function: Callable[..., object], place: str, name: str, wanted: str, *arguments: object
) -> None:
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        raise InvalidRequest(f"{place}: {name!r} is called with {wanted}: {error}") from None
    except ValueError:  # a builtin without a signature
        pass


def _name(function: object) -> str:
    return getattr(function, "__qualname__", None) or repr(function)


class JobHandlers:
    """Handlers by kind; the worker and the testing kit run jobs with them."""

    def __init__(
        self, backend: Callable[[], Backend], flow_of: Callable[[str], FlowHandle]
    ) -> None:
        self._backend = backend
        self._flow_of = flow_of
        self._jobs: dict[str, Job[..., Any]] = {}
        self._hooks: list[AroundHook] = []
        self.worker_hooks = WorkerHooks()
        self._listeners: dict[str, list[QueueListener]] = {}  # by queue

    @property
    def jobs(self) -> Mapping[str, Job[..., Any]]:
        return MappingProxyType(self._jobs)

    @property
    def kinds(self) -> list[str]:
        return sorted(self._jobs)

    @property
    def queues(self) -> list[str]:
        return sorted({job.queue for job in self._jobs.values()} | self._listeners.keys())

    @property
    def chunk_queues(self) -> frozenset[str]:
        """Queues whose only handler gets chunks by group."""
        by_queue: dict[str, list[Job[..., Any]]] = {}
        for job in self._jobs.values():
            by_queue.setdefault(job.queue, []).append(job)
        return frozenset(
            queue
            for queue, [job, *others] in by_queue.items()
            if not others and queue not in self._listeners and job.batch and job.batch.by == "group"
        )

    def add(self, job: Job[..., Any]) -> None:
        before = self._jobs.get(job.kind)
        if before is not None and _place(before) != _place(job):
            raise InvalidRequest(
                f"job {job.kind!r} is already declared in {_place(before)}: give one of them "
                "another kind"
            )
        self._jobs[job.kind] = job

    def add_hook(self, hook: Callable[[Current], Any]) -> None:
        """Raises InvalidRequest if the function cannot wrap jobs."""
        self._hooks.append(around_hook(hook))

    def find(self, kind: str) -> Job[..., Any] | None:
        return self._jobs.get(kind)

    def returns_of(self, kind: str) -> ReturnValue:
        job = self._jobs.get(kind)
        return PLAIN if job is None else job.returns

    def listen(self, queue: str, listener: QueueListener) -> None:
        """Handle the messages of a queue, of all or some kinds."""
        known = self._listeners.setdefault(queue, [])
        known[:] = [other for other in known if _place(other.function) != _place(listener.function)]
        known.append(listener)

    def handler_of(self, job: ClaimedJob) -> Handler | None:
        """By queue, if the queue belongs to a subscription or notifications; else by kind."""
        listeners = self._listeners.get(job.queue)
        if listeners is None and NODE_QUEUE_SEPARATOR in job.queue:
            listeners = self._listeners.get(job.queue.rpartition(NODE_QUEUE_SEPARATOR)[0])
        for listener in listeners or ():
            if listener.wants(job.kind):
                return listener
        return None if job.kind is None else self.find(job.kind)

    def bind_chunk(self, chunk: Chunk) -> Callable[[], object]:
        assert isinstance(chunk.handler, ChunkJob)
        items: list[Item[Any]] = [
            Item(member, self._backend, self._flow_of) for member in chunk.left
        ]
        chunk.items = items
        return chunk.handler.bind_items(items)

    def around(self, job: ClaimedJob) -> AbstractContextManager[Running]:
        """Enter the trace it was sent in, `current()`, then the sync hooks in declaration order."""
        current = Current(job, self._backend, self._flow_of)
        if not self._hooks and not tracing.is_needed(job):
            return CurrentJob(current)
        return self._around(job, current)

    def around_async(self, job: ClaimedJob) -> AbstractAsyncContextManager[Running]:
        """The same with all hooks, for an async handler."""
        current = Current(job, self._backend, self._flow_of)
        if not self._hooks and not tracing.is_needed(job):
            return CurrentJob(current)
        return self._around_async(job, current)

    @contextmanager
    def _around(self, job: ClaimedJob, current: Current) -> Iterator[Running]:
        with CurrentJob(current), tracing.consuming(job) as span, ExitStack() as stack:
            for hook in self._hooks:
                if not hook.is_async:
                    stack.enter_context(hook.sync(current))
            yield current
            span.note_result(current.result)

    @asynccontextmanager
    async def _around_async(self, job: ClaimedJob, current: Current) -> AsyncIterator[Running]:
        with CurrentJob(current), tracing.consuming(job) as span:
            async with AsyncExitStack() as stack:
                for hook in self._hooks:
                    if hook.is_async:
                        await stack.enter_async_context(hook.asynchronous(current))
                    else:
                        stack.enter_context(hook.sync(current))
                yield current
                span.note_result(current.result)


def _place(job: Callable[..., Any]) -> str:
    code = inspect.unwrap(job).__code__ if hasattr(inspect.unwrap(job), "__code__") else None
    if code is None:
        return repr(inspect.unwrap(job))
    return f"{code.co_filename}:{code.co_firstlineno}"
