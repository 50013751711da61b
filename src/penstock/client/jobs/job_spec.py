"""A kind of job, as `@app.job` declares it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from penstock.api.messages import RunOptions
from penstock.client.jobs.options import (
    BackoffLike,
    JobOptions,
    ResolvedOptions,
    Unique,
    backoff_of,
    key_of,
    unique_of,
)
from penstock.client.values.arguments import Arguments
from penstock.client.values.chunk_arguments import ChunkArguments
from penstock.client.values.return_value import Keeping, ReturnValue
from penstock.domain.duration import Duration, as_ms
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.draft import Draft
from penstock.domain.message.retry import Backoff
from penstock.domain.queue.queue import check_name
from penstock.worker.batch import Batch, check_batch


class JobSettings(RunOptions, total=False):
    """The keyword arguments of `@app.job(…)`."""

    kind: str  # default: the function's name
    queue: str  # default: "default"
    attempts: int | None  # how many attempts; None: the limit of the queue
    backoff: BackoffLike | None  # how long to wait after a failure; None: the queue's back-off
    timeout: Duration | None  # how long one attempt may take
    unique: bool | Unique
    expires_in: Duration | None  # cancel it if it is unclaimed by then
    logs: Literal["keep"] | None  # keep what it logs and prints with each attempt
    ignores: Sequence[str]  # removed parameters that queued jobs may still have
    result: Keeping | None  # what it returns; None: keep it if the annotation names a type for it


_RUN = RunOptions.__annotations__.keys()
_OPTIONS = JobSettings.__annotations__.keys() & JobOptions.__annotations__.keys()


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The definition of a kind of job."""

    kind: str
    arguments: Arguments
    returns: ReturnValue
    unique: Unique | None = None
    backoff: Backoff | None = None
    batch: Batch | None = None
    keeps_logs: bool = False

    def draft(self, resolved: ResolvedOptions, body: str) -> Draft:
        draft = replace(resolved.draft, kind=self.kind, body=body)
        if draft.dedup_key is not None or self.unique is None:
            return draft
        key = key_of(self.kind, self.arguments.canonical(body, self.unique.by))
        return replace(draft, dedup_key=key, dedup_until=self.unique.dedup_until)


def spec_of(function: Callable[..., object], about: JobSettings, batch: object = None) -> JobSpec:
    """Raises InvalidRequest if the function cannot be a job."""
    kind = about.get("kind") or str(getattr(function, "__name__", ""))
    _check_function(function, kind)
    arguments = _arguments(function, kind, about, is_chunk=batch is not None)
    timeout = about.get("timeout")
    timeout_ms = None if timeout is None else as_ms("timeout", timeout)
    return JobSpec(
        kind=kind,
        arguments=arguments,
        returns=ReturnValue(function, kind, about.get("result"), is_list=batch is not None),
        unique=unique_of(about.get("unique", False), arguments.names, kind),
        backoff=backoff_of(about.get("backoff")),
        batch=check_batch(batch, kind=kind, timeout_ms=timeout_ms),
        keeps_logs=_keeps_logs(about.get("logs"), kind, is_chunk=batch is not None),
    )


def resolve(about: JobSettings) -> ResolvedOptions:
    """The default options of jobs of this kind."""
    unknown = about.keys() - JobSettings.__annotations__.keys()
    if unknown:
        raise InvalidRequest(f"a job has no setting {', '.join(sorted(unknown))}")
    if "queue" in about:
        check_name(about["queue"])
    given: dict[str, Any] = {name: value for name, value in about.items() if name in _OPTIONS}
    if given.get("expires_in") is None:
        given.pop("expires_in", None)
    options: JobOptions = given  # type: ignore[assignment]
    fields: dict[str, Any] = {name: about[name] for name in _RUN & about.keys()}  # type: ignore[literal-required]
    return ResolvedOptions(draft=Draft(body="", **fields)).merged(options)


def _arguments(
    function: Callable[..., object], kind: str, about: JobSettings, *, is_chunk: bool
) -> Arguments:
    ignores = about.get("ignores", ())
    if not is_chunk:
        return Arguments(function, kind, ignores=ignores)
    if ignores:
        raise InvalidRequest(
            f"job {kind!r} gets chunks: the type of its elements replaces `ignores`"
        )
    return ChunkArguments(function, kind)


def _keeps_logs(logs: object, kind: str, *, is_chunk: bool) -> bool:
    if logs not in (None, "keep"):
        raise InvalidRequest(f'job {kind!r}: logs takes "keep" or None, not {logs!r}')
    if logs and is_chunk:
        raise InvalidRequest(f"job {kind!r} gets chunks: logs are kept for single jobs only")
    return logs == "keep"


def _check_function(function: Callable[..., object], kind: str) -> None:
    # Decorators may return other callables; `functools.wraps` keeps the wrapped function.
    if not inspect.isroutine(function) and (
        inspect.isclass(function) or not hasattr(function, "__wrapped__")
    ):
        raise InvalidRequest(
            f"a job is a function, not {function!r}: define a function that calls it"
        )
    if not kind:
        raise InvalidRequest(f"{function!r} has no name: give it a kind")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidRequest(f"job {kind!r} is a generator: a job returns once")
    first = next(iter(inspect.signature(function).parameters), None)
    if first in ("self", "cls") and "." in getattr(function, "__qualname__", ""):
        raise InvalidRequest(f"job {kind!r} is a method: there would be no object to call it on")
