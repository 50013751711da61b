"""A handler of notifications or events.

It takes the body, decoded by its annotation, and optionally a second parameter that describes the
notification or event.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from fnmatch import fnmatchcase
from inspect import Parameter
from typing import Any, TypedDict, get_type_hints

import msgspec

from penstock.client.jobs.current import Current, current
from penstock.client.jobs.options import BackoffLike, backoff_of, instant
from penstock.client.values.json_values import read_model
from penstock.client.values.return_value import ReturnValue
from penstock.domain.duration import Duration, as_ms
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.lifecycle import EXHAUSTED
from penstock.domain.message.notification import RetrySchedule, planned_at
from penstock.domain.message.outcome import Bury, HandlerOutcome, Retry, suspension_of
from penstock.domain.message.retry import Backoff
from penstock.ports.clock import Clock
from penstock.worker.error_text import error_text
from penstock.worker.interruption import JobCancelled

_log = logging.getLogger("penstock.client")
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_OTHER_ATTEMPTS = 5

OnExhausted = Callable[[Any, Exception], None]


class ListenerSettings(TypedDict, total=False):
    """Options of handlers of notifications and of events."""

    retry: RetrySchedule | BackoffLike | None  # None: that of the queue
    attempts: int  # after how many to give up; default: the limit of the queue or the schedule
    on_exhausted: OnExhausted | None  # called with the body and the error when the handler gives up
    timeout: Duration | None  # how long one attempt may take


class QueueListener:
    def __init__(
        self,
        function: Callable[..., Any],
        *,
        kinds: Sequence[str],
        about: Callable[[Current], object],
        clock: Callable[[], Clock],
        settings: ListenerSettings,
    ) -> None:
        self.kind = function.__name__
        self.function = function
        self.keeps_result = False
        self.write_result = ReturnValue(function, self.kind, "drop").write
        self.kinds = tuple(kinds)
        self._takes_about = _takes_about(function)
        self._about = about
        self._clock = clock
        self._decoder: msgspec.json.Decoder[Any] | None = None
        retry = settings.get("retry")
        self.schedule = retry if isinstance(retry, RetrySchedule) else None
        self.backoff: Backoff | None = None
        if not isinstance(retry, RetrySchedule):
            self.backoff = backoff_of(retry)
        self._attempts = settings.get("attempts")
        self._on_exhausted = settings.get("on_exhausted")
        _check_giving_up(self.kind, settings)
        timeout = settings.get("timeout")
        self.timeout_ms = None if timeout is None else as_ms("timeout", timeout)
        self.batch = None
        self.keeps_logs = False

    @property
    def max_attempts(self) -> int | None:
        """The attempts its queue must allow, so that the handler decides; leases may expire too."""
        own = self._attempts
        if self.schedule is not None:
            own = len(self.schedule.offsets_ms) + 1
        return None if own is None else own + _OTHER_ATTEMPTS

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    def wants(self, kind: str | None) -> bool:
        if not self.kinds:
            return True
        return kind is not None and any(fnmatchcase(kind, pattern) for pattern in self.kinds)

    def call_with(self, body: str) -> Callable[[], object]:
        try:
            event = self._prepare().decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InvalidRequest(f"{self.kind!r} cannot decode the body: {error}") from None
        if self.schedule is None and self._attempts is None:
            return lambda: self._call(event)
        return lambda: self._call_guarded(event)

    def _call(self, event: object) -> object:
        if self._takes_about:
            return self.function(event, self._about(current()))
        return self.function(event)

    def _call_guarded(self, event: object) -> object:
        with self._judging(event):
            result = self._call(event)
        return self._await_guarded(event, result) if inspect.isawaitable(result) else result

    async def _await_guarded(self, event: object, result: Awaitable[object]) -> object:
        with self._judging(event):
            return await result

    @contextmanager
    def _judging(self, event: object) -> Iterator[None]:
        try:
            yield
        except (HandlerOutcome, asyncio.CancelledError, GeneratorExit, JobCancelled):
            raise
        except BaseException as error:
            if suspension_of(error) is not None:
                raise
            self._judge(event, error)
            raise

    def _judge(self, event: object, error: BaseException) -> None:
        """Raise the outcome that the schedule prescribes; calls the hook after the last failure."""
        job = current()
        if self.schedule is None:
            if self._attempts is not None and job.attempts >= self._attempts:
                self._give_up(event, error)
            return
        planned = planned_at(job.attributes)
        if planned is None:  # an event: the schedule starts when it was published
            planned = instant("sent_at", job.sent_at)
        in_ms = self.schedule.retry_in_ms(
            planned_at=planned, failures=job.failures + 1, now=self._clock().now()
        )
        if in_ms is None:
            self._give_up(event, error)
        else:
            raise Retry(timedelta(milliseconds=in_ms), error=error_text(error)) from error

    def _give_up(self, event: object, error: BaseException) -> None:
        try:
            if self._on_exhausted is not None:
                self._on_exhausted(event, error)  # type: ignore[arg-type]
        except Exception:  # a failure of the hook must not cause a retry
            _log.exception("on_exhausted of %r failed", self.kind)
        raise Bury(f"{EXHAUSTED}: {error_text(error)}") from error

    def _prepare(self) -> msgspec.json.Decoder[Any]:
        """Resolve annotations at the first use: they may name what the module defines later."""
        if self._decoder is None:
            hints = get_type_hints(self.function, include_extras=True)
            first = next(iter(inspect.signature(self.function).parameters))
            hint = hints.get(first, Any)
            self._decoder = msgspec.json.Decoder(
                Any if hint is object else hint, dec_hook=read_model
            )
        return self._decoder


def _check_giving_up(name: str, settings: ListenerSettings) -> None:
    attempts, retry = settings.get("attempts"), settings.get("retry")
    if attempts is not None and isinstance(retry, RetrySchedule):
        raise InvalidRequest(
            f"handler {name!r}: a RetrySchedule sets the number of attempts; leave attempts= out"
        )
    if attempts is not None and not 1 <= attempts <= 1_000_000:
        raise InvalidRequest(f"handler {name!r}: attempts must be from 1 to 1000000")
    if settings.get("on_exhausted") and attempts is None and not isinstance(retry, RetrySchedule):
        raise InvalidRequest(
            f"handler {name!r}: on_exhausted needs attempts= or a RetrySchedule, "
            "because the queue would give up without calling it"
        )


def _takes_about(function: Callable[..., Any]) -> bool:
    """Whether it has a second parameter; raises InvalidRequest if it cannot be a handler."""
    if not inspect.isroutine(function) and not inspect.isfunction(function):
        raise InvalidRequest(f"a handler is a function, not {function!r}")
    parameters = list(inspect.signature(function).parameters.values())
    needed = [p for p in parameters if p.default is Parameter.empty and p.kind in _POSITIONAL]
    if not 1 <= len(needed) <= 2 or any(
        p.kind is Parameter.KEYWORD_ONLY and p.default is Parameter.empty for p in parameters
    ):
        raise InvalidRequest(
            f"handler {function.__name__!r} must take the body, "
            "and optionally its description as a second parameter"
        )
    return len(needed) == 2
