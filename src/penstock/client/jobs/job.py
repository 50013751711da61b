"""A job: a plain function that can also be enqueued."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, Unpack

import msgspec

from penstock.client.jobs.handle import Enqueued
from penstock.client.jobs.job_spec import JobSpec
from penstock.client.jobs.options import JobOptions, ResolvedOptions, Unique
from penstock.client.values.return_value import ReturnValue
from penstock.domain.duration import Duration
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.draft import Draft
from penstock.domain.message.retry import Backoff

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class JobCall(msgspec.Struct, frozen=True):
    """The arguments of one call in `enqueue_many`."""

    args: tuple[object, ...]
    kwargs: dict[str, object]


class BoundJob(msgspec.Struct, Generic[R_co], frozen=True, eq=False):
    """A call of a job, to be enqueued as a member of a flow."""

    outbox: Outbox
    spec: JobSpec
    resolved: ResolvedOptions
    args: tuple[object, ...]
    kwargs: dict[str, object]

    def draft(self, is_result: Callable[[object], bool]) -> tuple[Draft, dict[str, object]]:
        """The draft, and the arguments that are results, by name.  Raises InvalidRequest."""
        kind = self.spec.kind
        if self.spec.unique is not None:
            raise InvalidRequest(
                f"job {kind!r} is unique, so it cannot be in a flow: declare a job without `unique`"
            )
        body, results = self.spec.arguments.write_part(self.args, self.kwargs, is_result)
        return msgspec.structs.replace(self.resolved.draft, kind=kind, body=body), results


class Outbox(Protocol):
    """Where drafts are sent."""

    def put(
        self, resolved: ResolvedOptions, drafts: Sequence[Draft], returns: ReturnValue
    ) -> list[Enqueued[Any]]: ...
    async def put_async(
        self, resolved: ResolvedOptions, drafts: Sequence[Draft], returns: ReturnValue
    ) -> list[Enqueued[Any]]: ...


class Enqueuing(Generic[P, R_co]):
    """All ways to enqueue; each has an async version.  Rejections are raised as PenstockErrors."""

    def __init__(self, outbox: Outbox, spec: JobSpec, resolved: ResolvedOptions) -> None:
        self._outbox = outbox
        self._spec = spec
        self._resolved = resolved

    def using(self, **options: Unpack[JobOptions]) -> Enqueuing[P, R_co]:
        """Return the same job with other options."""
        return Enqueuing(self._outbox, self._spec, self._resolved.merged(options))

    def args(self, *args: P.args, **kwargs: P.kwargs) -> JobCall:
        """Arguments for `enqueue_many`."""
        return JobCall(args, kwargs)

    def bind(self, *args: Any, **kwargs: Any) -> BoundJob[R_co]:
        """A call for a flow; its arguments may be results of other members."""
        return BoundJob(self._outbox, self._spec, self._resolved, args, kwargs)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Enqueued[R_co]:
        """Enqueue one job; returns when it is on disk."""
        return self._put(self._resolved, args, kwargs)

    def enqueue_in(self, delay: Duration, /, *args: P.args, **kwargs: P.kwargs) -> Enqueued[R_co]:
        return self._put(self._resolved.merged({"delay": delay}), args, kwargs)

    def enqueue_at(self, due_at: datetime, /, *args: P.args, **kwargs: P.kwargs) -> Enqueued[R_co]:
        return self._put(self._resolved.merged({"due_at": due_at}), args, kwargs)

    def enqueue_many(self, calls: Iterable[JobCall | Mapping[str, object]]) -> list[Enqueued[R_co]]:
        """Enqueue with one transaction per batch; arguments by `args(…)`, or by name.

        All are checked before the first is sent.
        """
        return self._outbox.put(self._resolved, self._drafts(calls), self._spec.returns)

    async def enqueue_async(self, *args: P.args, **kwargs: P.kwargs) -> Enqueued[R_co]:
        return await self._put_async(self._resolved, args, kwargs)

    async def enqueue_in_async(
        self, delay: Duration, /, *args: P.args, **kwargs: P.kwargs
    ) -> Enqueued[R_co]:
        return await self._put_async(self._resolved.merged({"delay": delay}), args, kwargs)

    async def enqueue_at_async(
        self, due_at: datetime, /, *args: P.args, **kwargs: P.kwargs
    ) -> Enqueued[R_co]:
        return await self._put_async(self._resolved.merged({"due_at": due_at}), args, kwargs)

    async def enqueue_many_async(
        self, calls: Iterable[JobCall | Mapping[str, object]]
    ) -> list[Enqueued[R_co]]:
        return await self._outbox.put_async(self._resolved, self._drafts(calls), self._spec.returns)

    def _put(
        self, resolved: ResolvedOptions, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> Enqueued[R_co]:
        body = self._spec.arguments.write(args, kwargs)
        draft = self._spec.draft(resolved, body)
        return self._outbox.put(resolved, [draft], self._spec.returns)[0]

    async def _put_async(
        self, resolved: ResolvedOptions, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> Enqueued[R_co]:
        body = self._spec.arguments.write(args, kwargs)
        draft = self._spec.draft(resolved, body)
        return (await self._outbox.put_async(resolved, [draft], self._spec.returns))[0]

    def _drafts(self, calls: Iterable[JobCall | Mapping[str, object]]) -> list[Draft]:
        write, write_named = self._spec.arguments.write, self._spec.arguments.write_named
        bodies = (
            write(call.args, call.kwargs) if isinstance(call, JobCall) else write_named(call)
            for call in calls
        )
        return [self._spec.draft(self._resolved, body) for body in bodies]


class Job(Enqueuing[P, R_co], Generic[P, R_co]):
    """A function decorated with `@app.job`; it is also the handler of its kind."""

    def __init__(
        self, function: Callable[P, R_co], outbox: Outbox, spec: JobSpec, resolved: ResolvedOptions
    ) -> None:
        super().__init__(outbox, spec, resolved)
        self._function = function
        self.is_async = inspect.iscoroutinefunction(function)  # read for each claimed job
        self.batch = spec.batch  # the same
        self.keeps_logs = spec.keeps_logs
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
        return self._resolved.queue

    @property
    def timeout_ms(self) -> int | None:
        return self._resolved.draft.timeout_ms

    @property
    def unique(self) -> Unique | None:
        return self._spec.unique

    @property
    def backoff(self) -> Backoff | None:
        return self._spec.backoff

    @property
    def returns(self) -> ReturnValue:
        return self._spec.returns

    @property
    def keeps_result(self) -> bool:
        return self._spec.returns.is_kept

    def write_result(self, value: object) -> str:
        """Encode what the function returned; raises InvalidRequest."""
        return self._spec.returns.write(value)

    def named(
        self, arguments: Mapping[str, object], options: JobOptions
    ) -> tuple[ResolvedOptions, Draft]:
        """Build the draft for arguments by name."""
        resolved = self._resolved.merged(options)
        body = self._spec.arguments.write_named(arguments)
        return resolved, self._spec.draft(resolved, body)

    def call_with(self, body: str) -> Callable[[], R_co | Awaitable[R_co]]:
        args, kwargs = self._spec.arguments.read(body)
        function: Callable[..., R_co] = self._function
        return lambda: function(*args, **kwargs)
