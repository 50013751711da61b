"""How the calls of a test reach the client: directly, beside an event loop, or awaited."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from penstock import Penstock
from penstock.client.aside import aside
from penstock.client.job import Enqueuing
from penstock.client.notifications import NotificationQueue
from penstock.testing import Kit

T = TypeVar("T")

_TWIN = "_async"
CLASSES: tuple[type, ...] = (Penstock, Enqueuing, NotificationQueue, Kit)

# What a worker or an operator has is called on a thread of its own, as in production.
beside = aside


def run(program: Coroutine[Any, Any, T]) -> T:
    """Run it to its end, on an event loop of its own."""
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
    """The sync methods that have an async form."""
    for owner in CLASSES:
        for name in dir(owner):
            if name.endswith(_TWIN) and not name.startswith("_"):
                assert hasattr(owner, name.removesuffix(_TWIN)), f"{owner.__name__}.{name}"
                yield owner, name.removesuffix(_TWIN)


def await_twins(monkeypatch: pytest.MonkeyPatch, loop: asyncio.AbstractEventLoop) -> None:
    """Every sync call that has an async form awaits that form on the loop instead."""
    for owner, name in list(twins()):
        twin = inspect.getattr_static(owner, name + _TWIN)
        monkeypatch.setattr(owner, name, _awaiting(getattr(owner, name), twin, loop))


def _awaiting(
    sync: Callable[..., Any], twin: Callable[..., Any], loop: asyncio.AbstractEventLoop
) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:  # a handler on the loop, or what the client itself calls there: it cannot wait for it
            return sync(*args, **kwargs)
        if inspect.isasyncgenfunction(twin):
            return iter(
                asyncio.run_coroutine_threadsafe(_all(twin(*args, **kwargs)), loop).result()
            )
        return asyncio.run_coroutine_threadsafe(twin(*args, **kwargs), loop).result()

    return call


async def _all(items: Any) -> list[Any]:
    return [item async for item in items]


class BesideLoop:
    """The broker as an operator elsewhere has it: its calls are made on a thread without a loop."""

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find  # at the first use: what opens a store does so inside the test

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._find(), name)
        if type(found).__module__.startswith(("penstock.services", "penstock.store")):
            return BesideLoop(lambda: found)
        if callable(found):
            return lambda *args, **kwargs: beside(lambda: found(*args, **kwargs))
        return found
