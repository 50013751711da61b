"""Functions of an application that wrap its jobs or run when a worker process starts or stops."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from typing import Any

import msgspec

from penstock.client.jobs.current import Current
from penstock.domain.errors import InvalidRequest


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
