"""What `@app.job` says of a kind of job, and what becomes of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TypedDict

import msgspec
from msgspec.structs import replace

from penstock.client.jobs.arguments import Arguments
from penstock.client.jobs.options import (
    BackoffLike,
    JobOptions,
    Settled,
    Unique,
    backoff_of,
    key_of,
    unique_of,
)
from penstock.domain.duration import Duration
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.draft import Draft
from penstock.domain.message.retry import Backoff
from penstock.domain.queue.queue import check_name


class JobSettings(TypedDict, total=False):
    """What `@app.job(…)` takes."""

    kind: str  # the name it goes by in the queue; without it, the function's
    queue: str  # without it, "default"
    attempts: int | None  # how often it is tried; None: as the queue says
    backoff: BackoffLike | None  # how long to wait after a failure; None: as the queue says
    timeout: Duration | None  # how long one attempt may take
    retries_timeouts: bool  # try again what took too long; otherwise it is dead
    unique: bool | Unique
    priority: int  # smaller goes first
    route: str | None  # where it leads, for circuits and statistics
    expires_in: Duration | None  # too old to be of use after that time
    ignores: Sequence[str]  # parameters it had once, which queued jobs may still bring


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a kind of job."""

    kind: str
    arguments: Arguments
    unique: Unique | None = None
    backoff: Backoff | None = None

    def draft(self, settled: Settled, body: str) -> Draft:
        draft = replace(settled.draft, kind=self.kind, body=body)
        if draft.dedup_key is not None or self.unique is None:
            return draft
        key = key_of(self.kind, self.arguments.canonical(body, self.unique.by))
        return replace(draft, dedup_key=key, dedup_until=self.unique.dedup_until)


def spec_of(function: Callable[..., object], about: JobSettings) -> JobSpec:
    """Raises InvalidRequest for what cannot be a job."""
    kind = about.get("kind") or str(getattr(function, "__name__", ""))
    _check_function(function, kind)
    arguments = Arguments(function, kind, ignores=about.get("ignores", ()))
    return JobSpec(
        kind=kind,
        arguments=arguments,
        unique=unique_of(about.get("unique", False), arguments.names, kind),
        backoff=backoff_of(about.get("backoff")),
    )


def settle(about: JobSettings) -> Settled:
    """How such jobs are enqueued as long as nobody says otherwise."""
    unknown = about.keys() - JobSettings.__annotations__.keys()
    if unknown:
        raise InvalidRequest(f"a job has no setting {', '.join(sorted(unknown))}")
    options: JobOptions = {"priority": about.get("priority", 0)}
    if "queue" in about:
        options["queue"] = check_name(about["queue"])
    if "attempts" in about:
        options["attempts"] = about["attempts"]
    if "timeout" in about:
        options["timeout"] = about["timeout"]
    if "route" in about:
        options["route"] = about["route"]
    expires_in = about.get("expires_in")
    if expires_in is not None:
        options["expires_in"] = expires_in
    plain = Settled(draft=Draft(body="", retries_timeouts=about.get("retries_timeouts", False)))
    return plain.merged(options)


def _check_function(function: Callable[..., object], kind: str) -> None:
    # Decorators may return other callables; `functools.wraps` keeps the function they stand for.
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
