"""How a test calls the client: directly, beside an event loop, or with await."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import pytest

from penstock import Penstock
from penstock.client.blocking import run_off_loop
from penstock.client.bus.notifications import NotificationQueue
from penstock.client.flows.builder import FlowBuilder, JobBatch
from penstock.client.flows.handle import FlowHandle
from penstock.client.flows.node import Node
from penstock.client.flows.steps import Steps
from penstock.client.jobs.handle import Enqueued
from penstock.client.jobs.job import Enqueuing
from penstock.client.jobs.jobs import Jobs
from penstock.client.jobs.recurring import RecurringWork
from penstock.ports.unit_of_work import Work
from penstock.testing import Kit

T = TypeVar("T")

_TWIN = "_async"
_is_awaiting: ContextVar[bool] = ContextVar("is_awaiting", default=False)
CLASSES: tuple[type, ...] = (
    Penstock,
    Enqueuing,
    Enqueued,
    Jobs,
    FlowHandle,
    FlowBuilder,
    JobBatch,
    Steps,
    Node,
    NotificationQueue,
    RecurringWork,
    Kit,
)

# Calls of workers and operators are made on a thread of their own, as in production.
beside = run_off_loop


def run(program: Coroutine[Any, Any, T]) -> T:
    """Run it to completion, on an event loop of its own."""
    return beside(lambda: asyncio.run(program))


@contextmanager
def running_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in a thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="caller's loop")
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def twins() -> Iterator[tuple[type, str]]:
    """The sync methods that have an async version."""
    for owner in CLASSES:
        for name in dir(owner):
            if name.endswith(_TWIN) and not name.startswith("_"):
                assert hasattr(owner, name.removesuffix(_TWIN)), f"{owner.__name__}.{name}"
                yield owner, name.removesuffix(_TWIN)


def await_twins(monkeypatch: pytest.MonkeyPatch, loop: asyncio.AbstractEventLoop) -> None:
    """Make every sync call that has an async version await that version on the loop instead."""
    for owner, name in list(twins()):
        twin = inspect.getattr_static(owner, name + _TWIN)
        monkeypatch.setattr(owner, name, _awaiting(getattr(owner, name), twin, loop))


def _awaiting(
    sync: Callable[..., Any], twin: Callable[..., Any], loop: asyncio.AbstractEventLoop
) -> Callable[..., Any]:
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        _is_awaiting.set(True)
        answer = twin(*args, **kwargs)
        if isinstance(answer, AsyncIterator):
            return iter([item async for item in answer])
        return await answer

    def call(*args: Any, **kwargs: Any) -> Any:
        # Calls that an async version or its handlers make themselves stay as they are.
        if _is_awaiting.get() or is_on_loop():
            return sync(*args, **kwargs)
        return asyncio.run_coroutine_threadsafe(awaited(*args, **kwargs), loop).result()

    return call


def is_on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class BesideLoop:
    """The broker as a remote operator sees it: its calls run on a thread without a loop."""

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find  # at the first use, so that a store is opened inside the test

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._find(), name)
        if type(found).__module__.startswith(("penstock.services", "penstock.store")):
            return BesideLoop(lambda: found)
        if isinstance(self._find(), Work):
            return lambda *args, **kwargs: beside(lambda: found(*args, **kwargs))
        if callable(found):
            return lambda *args, **kwargs: _beside_loop(beside(lambda: found(*args, **kwargs)))
        return found


def _beside_loop(answer: Any) -> Any:
    """Work runs where its result is requested, which must be beside the loop as well."""
    return BesideLoop(lambda: answer) if isinstance(answer, Work) else answer
