"""The handlers of an application, and what surrounds each call of one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import MappingProxyType
from typing import Any

from penstock.client import tracing
from penstock.client.backing import Backing
from penstock.client.current import Being, Current
from penstock.client.job import Job
from penstock.client.listener import Listener
from penstock.domain.errors import InvalidRequest
from penstock.domain.topic import OF_NODE
from penstock.ports.work import Controls, Handler, Running, Work

Hook = Callable[[Current], AbstractContextManager[Any]]


class JobHandlers:
    """By kind.  What the worker and the testing kit run jobs with."""

    def __init__(self, backing: Callable[[], Backing]) -> None:
        self._backing = backing
        self._jobs: dict[str, Job[..., Any]] = {}
        self._hooks: list[Hook] = []
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
        made: Hook = contextmanager(hook) if inspect.isgeneratorfunction(hook) else hook
        self._hooks.append(made)

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

    def around(self, work: Work, controls: Controls) -> AbstractContextManager[Running]:
        """The trace it was sent in, `current()`, then the hooks in the order they were made."""
        job = Current(work, controls, self._backing)
        if not self._hooks and not tracing.is_needed(work):
            return Being(job)
        return self._around(work, job)

    @contextmanager
    def _around(self, work: Work, job: Current) -> Iterator[Running]:
        with Being(job), tracing.around(work) as span, ExitStack() as stack:
            for hook in self._hooks:
                stack.enter_context(hook(job))
            yield job
            span.told(job.result)


def _place(job: Callable[..., Any]) -> str:
    code = inspect.unwrap(job).__code__ if hasattr(inspect.unwrap(job), "__code__") else None
    if code is None:
        return repr(inspect.unwrap(job))
    return f"{code.co_filename}:{code.co_firstlineno}"
