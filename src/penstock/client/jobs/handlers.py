"""The handlers of an application, and what surrounds each call of one."""

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
from typing import Any

from penstock.client.backend import Backing
from penstock.client.bus.listener import Listener
from penstock.client.jobs import tracing
from penstock.client.jobs.current import Being, Current
from penstock.client.jobs.hooks import AroundHook, around_hook
from penstock.client.jobs.job import Job
from penstock.domain.errors import InvalidRequest
from penstock.domain.topic import OF_NODE
from penstock.ports.work import Handler, JobControls, Running, Work
from penstock.worker.lifespan import WorkerHooks


class JobHandlers:
    """By kind.  What the worker and the testing kit run jobs with."""

    def __init__(self, backing: Callable[[], Backing]) -> None:
        self._backing = backing
        self._jobs: dict[str, Job[..., Any]] = {}
        self._hooks: list[AroundHook] = []
        self.worker_hooks = WorkerHooks()
        self._listeners: dict[str, list[Listener]] = {}  # by queue

    @property
    def jobs(self) -> Mapping[str, Job[..., Any]]:
        return MappingProxyType(self._jobs)

    @property
    def kinds(self) -> list[str]:
        return sorted(self._jobs)

    @property
    def queues(self) -> list[str]:
        return sorted({job.queue for job in self._jobs.values()} | self._listeners.keys())

    def add(self, job: Job[..., Any]) -> None:
        before = self._jobs.get(job.kind)
        if before is not None and _place(before) != _place(job):
            raise InvalidRequest(
                f"there is a job {job.kind!r} already, in {_place(before)}: give one of them a kind"
            )
        self._jobs[job.kind] = job

    def add_hook(self, hook: Callable[[Current], Any]) -> None:
        """Raises InvalidRequest for what can surround no job."""
        self._hooks.append(around_hook(hook))

    def find(self, kind: str) -> Job[..., Any] | None:
        return self._jobs.get(kind)

    def listen(self, queue: str, listener: Listener) -> None:
        """Have all that comes through a queue handled, or what is of some kinds."""
        known = self._listeners.setdefault(queue, [])
        known[:] = [other for other in known if _place(other.function) != _place(listener.function)]
        known.append(listener)

    def of(self, work: Work) -> Handler | None:
        """By its queue, where that is a subscription's or for notifications; else by its kind."""
        listeners = self._listeners.get(work.queue)
        if listeners is None and OF_NODE in work.queue:
            listeners = self._listeners.get(work.queue.rpartition(OF_NODE)[0])
        for listener in listeners or ():
            if listener.wants(work.kind):
                return listener
        return None if work.kind is None else self.find(work.kind)

    def around(self, work: Work, controls: JobControls) -> AbstractContextManager[Running]:
        """The trace it was sent in, `current()`, then the sync hooks as they were declared."""
        job = Current(work, controls, self._backing)
        if not self._hooks and not tracing.is_needed(work):
            return Being(job)
        return self._around(work, job)

    def around_async(
        self, work: Work, controls: JobControls
    ) -> AbstractAsyncContextManager[Running]:
        """The same with all hooks, for an async handler."""
        job = Current(work, controls, self._backing)
        if not self._hooks and not tracing.is_needed(work):
            return Being(job)
        return self._around_async(work, job)

    @contextmanager
    def _around(self, work: Work, job: Current) -> Iterator[Running]:
        with Being(job), tracing.around(work) as span, ExitStack() as stack:
            for hook in self._hooks:
                if not hook.is_async:
                    stack.enter_context(hook.sync(job))
            yield job
            span.told(job.result)

    @asynccontextmanager
    async def _around_async(self, work: Work, job: Current) -> AsyncIterator[Running]:
        with Being(job), tracing.around(work) as span:
            async with AsyncExitStack() as stack:
                for hook in self._hooks:
                    if hook.is_async:
                        await stack.enter_async_context(hook.asynchronous(job))
                    else:
                        stack.enter_context(hook.sync(job))
                yield job
                span.told(job.result)


def _place(job: Callable[..., Any]) -> str:
    code = inspect.unwrap(job).__code__ if hasattr(inspect.unwrap(job), "__code__") else None
    if code is None:
        return repr(inspect.unwrap(job))
    return f"{code.co_filename}:{code.co_firstlineno}"
