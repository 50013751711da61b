"""Questions that may take long are asked aside, each in a thread of its own.

Not a pool: in one, those that hang would keep all others waiting.  There are never more than one
per fleet, and they end with the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol, TypeVar

T = TypeVar("T")


class Aside(Protocol):
    def begin(self, name: str, what: Callable[[], T]) -> Future[T]: ...


class Threads:
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
