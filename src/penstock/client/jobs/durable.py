"""Durable parts of a running job: steps that are not repeated, sleeps, waits for signals.

What is recorded is loaded once per attempt, at the first use, and only if the job was claimed
before.  A name that is used again in the same attempt gets a number: `poll`, `poll#2`, `poll#3`.
"""

from __future__ import annotations

import inspect
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar, overload

import msgspec

from penstock.api.jobs import steps
from penstock.api.jobs.steps import BeginWait, RecordStep
from penstock.api.operation import PageQuery
from penstock.client.backend import Backend
from penstock.client.channel import Ask, Channel, Flow, run, run_async
from penstock.client.values.json_values import return_annotation
from penstock.client.values.step_outcomes import OutcomeType
from penstock.domain.datetimes import instant_of
from penstock.domain.duration import Duration, as_ms
from penstock.domain.errors import InvalidRequest, TooLarge
from penstock.domain.limits import DEFAULT_LIMITS
from penstock.domain.message.outcome import Bury, Suspended
from penstock.domain.message.step import check_step_name
from penstock.worker.claimed_job import ClaimedJob

P = ParamSpec("P")
R = TypeVar("R")

_PAGE = 1_000
_SLEEP = "sleep"


class _Recorded:
    """What the steps of one attempt share; used by threads and tasks at the same time."""

    def __init__(self, *, is_first_claim: bool) -> None:
        self.is_loaded = is_first_claim
        self.outcomes: dict[str, bytes] = {}
        self.ends: dict[str, int] = {}  # of sleeps
        self._uses: Counter[str] = Counter()
        self._lock = threading.Lock()

    def key(self, name: str) -> str:
        """The name under which this use of a name is recorded, checked before its step runs."""
        if "#" in name:
            raise InvalidRequest(f"the name of a step is text without '#', not {name!r}")
        with self._lock:
            self._uses[name] += 1
            count = self._uses[name]
        return check_step_name(name if count == 1 else f"{name}#{count}", DEFAULT_LIMITS)

    def note(self, step: steps.Step) -> bytes:
        outcome = step.outcome
        if isinstance(outcome, dict) and outcome.keys() == {"sleep_ms"}:
            self.ends[step.name] = instant_of(step.at) + outcome["sleep_ms"]
        text = self.outcomes[step.name] = msgspec.json.encode(outcome)
        return text


class DurableSteps:
    """Each method has a form for sync handlers."""

    def __init__(
        self,
        job: ClaimedJob,
        backend: Callable[[], Backend],
        *,
        tx: object = None,
        recorded: _Recorded | None = None,
    ) -> None:
        self._job = job
        self._backend = backend
        self._tx = tx
        self._recorded = recorded or _Recorded(is_first_claim=job.lease_no <= 1)

    def using(self, *, tx: object) -> DurableSteps:
        """Record in the caller's own transaction: a step counts if and only if it commits."""
        return DurableSteps(self._job, self._backend, tx=tx, recorded=self._recorded)

    def scope(self, name: str) -> str:
        """A name for a group of steps, with a number if it is used again in this attempt."""
        return self._recorded.key(name.replace("#", " ")).replace("#", " ")

    @overload
    async def step(
        self, name: str, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> R: ...

    @overload
    async def step(
        self, name: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R: ...

    async def step(
        self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        """Call a function, sync or async, and record what it returns; later attempts get that.

        Raises LeaseLost, and InvalidRequest if the annotated outcome cannot be JSON.
        """
        outcome, key = OutcomeType(return_annotation(function), name), self._recorded.key(name)
        await run_async(self._channel, self._load())
        text = self._recorded.outcomes.get(key)
        if text is None:
            begun_at = self._now()
            result = function(*args, **kwargs)
            if inspect.isawaitable(result):
                result = await result
            wanted = self._record(key, outcome.write(result), begun_at)
            try:
                recorded = await self._channel.request_async(
                    steps.RECORD, wanted, tx=self._tx, receipt=self._job.receipt
                )
            except TooLarge as error:
                raise _too_large(name, error) from error
            text = self._recorded.note(recorded)
        return outcome.read(text)

    def step_sync(
        self, name: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """The same for sync handlers, with a sync function."""
        if inspect.iscoroutinefunction(function):
            raise InvalidRequest(f"step {name!r} calls an async function: use `await step(…)`")
        outcome, key = OutcomeType(return_annotation(function), name), self._recorded.key(name)
        run(self._channel, self._load())
        text = self._recorded.outcomes.get(key)
        if text is None:
            begun_at = self._now()
            result = function(*args, **kwargs)
            wanted = self._record(key, outcome.write(result), begun_at)
            try:
                recorded = self._channel.request(
                    steps.RECORD, wanted, tx=self._tx, receipt=self._job.receipt
                )
            except TooLarge as error:
                raise _too_large(name, error) from error
            text = self._recorded.note(recorded)
        found: R = outcome.read(text)
        return found

    async def sleep(self, duration: Duration, *, name: str = _SLEEP) -> None:
        """Suspend the job; it holds no slot meanwhile and runs again when the time is over."""
        await run_async(self._channel, self._sleep(name, duration))

    def sleep_sync(self, duration: Duration, *, name: str = _SLEEP) -> None:
        run(self._channel, self._sleep(name, duration))

    async def wait_event(
        self,
        name: str,
        *,
        timeout: Duration | None = None,  # noqa: ASYNC109 (the twin of `wait_event_sync`)
        type: Any = Any,
    ) -> Any:
        """Suspend the job until a signal arrives, and return its body, decoded as `type`.

        Raises TimeoutError, in this and in later attempts.
        """
        return await run_async(self._channel, self._wait(name, timeout, type))

    def wait_event_sync(
        self, name: str, *, timeout: Duration | None = None, type: Any = Any
    ) -> Any:
        return run(self._channel, self._wait(name, timeout, type))

    def _now(self) -> int:
        return self._backend().clock.now()

    def _record(self, key: str, outcome: bytes, begun_at: int) -> RecordStep:
        """The clock may have been set back meanwhile."""
        return RecordStep(key, msgspec.Raw(outcome), max(0, self._now() - begun_at))

    @property
    def _channel(self) -> Channel:
        return self._backend().channel

    def _load(self) -> Flow[None]:
        """Read what earlier attempts have recorded; raises LeaseLost."""
        cursor: str | None = None
        while not self._recorded.is_loaded:
            query = PageQuery(limit=_PAGE, cursor=cursor)
            page: steps.Steps = yield Ask(
                steps.OF_LEASE, {"receipt": self._job.receipt}, query=query
            )
            for step in page.steps:
                self._recorded.note(step)
            cursor = page.next
            self._recorded.is_loaded = cursor is None

    def _sleep(self, name: str, duration: Duration) -> Flow[None]:
        ms, key = as_ms("duration", duration), self._recorded.key(name)
        yield from self._load()
        end = self._recorded.ends.get(key)
        if end is not None and end <= self._now():
            return
        wait = yield from self._begin(BeginWait(step=key, timeout_ms=ms))
        if wait.delay_ms:
            raise Suspended(wait.delay_ms)

    def _wait(self, name: str, timeout: Duration | None, kind: Any) -> Flow[Any]:
        body, key = OutcomeType(kind, name), self._recorded.key(f"signal {name}")
        timeout_ms = None if timeout is None else as_ms("timeout", timeout)
        yield from self._load()
        text = self._recorded.outcomes.get(key)
        if text is None:
            wait = yield from self._begin(BeginWait(name, key, timeout_ms))
            if wait.step is None:
                raise Suspended(wait.delay_ms, signal=name)
            text = self._recorded.outcomes[key]
        ended = _ended.decode(text)
        if ended.timed_out:
            raise TimeoutError(f"the signal {name!r} did not arrive within {timeout}")
        return body.read(bytes(ended.body))

    def _begin(self, wanted: BeginWait) -> Flow[steps.Wait]:
        wait: steps.Wait = yield Ask(steps.WAIT, {"receipt": self._job.receipt}, wanted)
        if wait.step is not None:
            self._recorded.note(wait.step)
        return wait


class _Ended(msgspec.Struct):
    body: msgspec.Raw = msgspec.Raw(b"null")
    timed_out: bool = False


_ended = msgspec.json.Decoder(_Ended)


def _too_large(name: str, error: TooLarge) -> Bury:
    return Bury(f"step {name!r} has run, but cannot be recorded: {error}")
