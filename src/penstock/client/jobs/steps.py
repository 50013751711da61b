"""Durable steps, sleeps and waits in a handler: `await step("charge", charge, order)`.

Each function has a form for sync handlers.  They raise InvalidRequest where no job runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar, overload

from penstock.client.jobs.current import current
from penstock.domain.duration import Duration

P = ParamSpec("P")
R = TypeVar("R")


@overload
async def step(
    name: str, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs
) -> R: ...


@overload
async def step(name: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...


async def step(name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a function, sync or async, and record what it returns; later attempts get that.

    The outcome is decoded by the function's return annotation.
    """
    return await current().steps.step(name, function, *args, **kwargs)


def step_sync(name: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    return current().steps.step_sync(name, function, *args, **kwargs)


async def sleep(duration: Duration, *, name: str = "sleep") -> None:
    """Suspend the job; it holds no slot meanwhile and runs again when the time is over."""
    await current().steps.sleep(duration, name=name)


def sleep_sync(duration: Duration, *, name: str = "sleep") -> None:
    current().steps.sleep_sync(duration, name=name)


async def wait_event(
    name: str,
    *,
    timeout: Duration | None = None,  # noqa: ASYNC109 (the twin of `wait_event_sync`)
    type: Any = Any,
) -> Any:
    """Suspend the job until a signal arrives, and return its body.  Raises TimeoutError."""
    return await current().steps.wait_event(name, timeout=timeout, type=type)


def wait_event_sync(name: str, *, timeout: Duration | None = None, type: Any = Any) -> Any:
    return current().steps.wait_event_sync(name, timeout=timeout, type=type)
