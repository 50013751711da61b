"""A job: a plain function that can also be enqueued."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Generic, ParamSpec, Protocol, TypeVar, Unpack

import msgspec

from penstock.client.jobs.job_spec import JobSpec
from penstock.client.jobs.options import JobOptions, Settled, Unique
from penstock.domain.duration import Duration
from penstock.domain.message.draft import Draft
from penstock.domain.message.retry import Backoff

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class Enqueued(msgspec.Struct, frozen=True):
    id: str
    is_duplicate: bool = False


class Call(msgspec.Struct, frozen=True):
    """The arguments of one job out of many."""

    args: tuple[object, ...]
    kwargs: dict[str, object]


class Counter(Protocol):
    """Where drafts are handed in."""

    def put(self, settled: Settled, drafts: Sequence[Draft]) -> list[Enqueued]: ...
    async def put_async(self, settled: Settled, drafts: Sequence[Draft]) -> list[Enqueued]: ...


class Enqueuing(Generic[P]):
    """All ways to enqueue; each has an async twin.  Refusals are raised as PenstockErrors."""

    def __init__(self, counter: Counter, spec: JobSpec, settled: Settled) -> None:
        self._counter = counter
        self._spec = spec
        self._settled = settled

    def using(self, **options: Unpack[JobOptions]) -> Enqueuing[P]:
        """The same job with other options, for the calls that follow."""
        return Enqueuing(self._counter, self._spec, self._settled.merged(options))

    def args(self, *args: P.args, **kwargs: P.kwargs) -> Call:
        """Arguments for `enqueue_many`."""
        return Call(args, kwargs)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Enqueued:
        """Returns when the job is on disk."""
        return self._put(self._settled, args, kwargs)

    def enqueue_in(self, delay: Duration, /, *args: P.args, **kwargs: P.kwargs) -> Enqueued:
        return self._put(self._settled.merged({"delay": delay}), args, kwargs)

    def enqueue_at(self, due_at: datetime, /, *args: P.args, **kwargs: P.kwargs) -> Enqueued:
        return self._put(self._settled.merged({"due_at": due_at}), args, kwargs)

    def enqueue_many(self, calls: Iterable[Call | Mapping[str, object]]) -> list[Enqueued]:
        """One transaction for as many as a batch takes; arguments by `args(…)`, or by name.

        All are looked at before the first is sent.
        """
        return self._counter.put(self._settled, self._drafts(calls))

    async def enqueue_async(self, *args: P.args, **kwargs: P.kwargs) -> Enqueued:
        return await self._put_async(self._settled, args, kwargs)

    async def enqueue_in_async(
        self, delay: Duration, /, *args: P.args, **kwargs: P.kwargs
    ) -> Enqueued:
        return await self._put_async(self._settled.merged({"delay": delay}), args, kwargs)

    async def enqueue_at_async(
        self, due_at: datetime, /, *args: P.args, **kwargs: P.kwargs
    ) -> Enqueued:
        return await self._put_async(self._settled.merged({"due_at": due_at}), args, kwargs)

    async def enqueue_many_async(
        self, calls: Iterable[Call | Mapping[str, object]]
    ) -> list[Enqueued]:
        return await self._counter.put_async(self._settled, self._drafts(calls))

    def _put(
        self, settled: Settled, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> Enqueued:
        body = self._spec.arguments.write(args, kwargs)
        return self._counter.put(settled, [self._spec.draft(settled, body)])[0]

    async def _put_async(
        self, settled: Settled, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> Enqueued:
        body = self._spec.arguments.write(args, kwargs)
        return (await self._counter.put_async(settled, [self._spec.draft(settled, body)]))[0]

    def _drafts(self, calls: Iterable[Call | Mapping[str, object]]) -> list[Draft]:
        write, write_named = self._spec.arguments.write, self._spec.arguments.write_named
        bodies = (
            write(call.args, call.kwargs) if isinstance(call, Call) else write_named(call)
            for call in calls
        )
        return [self._spec.draft(self._settled, body) for body in bodies]


class Job(Enqueuing[P], Generic[P, R_co]):
    """A function that `@app.job` was put on: also the handler of its kind."""

    def __init__(
        self, function: Callable[P, R_co], counter: Counter, spec: JobSpec, settled: Settled
    ) -> None:
        super().__init__(counter, spec, settled)
        self._function = function
        self.is_async = inspect.iscoroutinefunction(function)  # asked for each job that comes
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Job {self.kind!r} in queue {self.queue!r}>"

    @property
    def kind(self) -> str:
        return self._spec.kind

    @property
    def queue(self) -> str:
        return self._settled.queue

    @property
    def timeout_ms(self) -> int | None:
        return self._settled.draft.timeout_ms

    @property
    def retries_timeouts(self) -> bool:
        return self._settled.draft.retries_timeouts

    @property
    def unique(self) -> Unique | None:
        return self._spec.unique

    @property
    def backoff(self) -> Backoff | None:
        return self._spec.backoff

    def named(self, arguments: Mapping[str, object], options: JobOptions) -> tuple[Settled, Draft]:
        """What to enqueue for arguments by name."""
        settled = self._settled.merged(options)
        body = self._spec.arguments.write_named(arguments)
        return settled, self._spec.draft(settled, body)

    def bind(self, body: str) -> Callable[[], R_co | Awaitable[R_co]]:
        args, kwargs = self._spec.arguments.read(body)
        function: Callable[..., R_co] = self._function
        return lambda: function(*args, **kwargs)
