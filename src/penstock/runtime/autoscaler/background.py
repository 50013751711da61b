"""Runs calls that may take long in the background, each in its own thread.

There is no pool, in which calls that hang would block all others.  There is at most one thread per
fleet, and it ends with the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol, TypeVar

T = TypeVar("T")


class Background(Protocol):
    def begin(self, name: str, what: Callable[[], T]) -> Future[T]: ...


class BackgroundThreads:
    def begin(self, name: str, what: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        thread = threading.Thread(
            target=_run, args=(what, future), name=f"penstock-fleet-{name}", daemon=True
        )
        thread.start()
        return future


def _run(what: Callable[[], T], future: Future[T]) -> None:
    try:
        future.set_result(what())
    except BaseException as error:
        future.set_exception(error)
