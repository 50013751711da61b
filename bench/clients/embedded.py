"""Queue libraries that live in the caller's process: no server, one thread per connection.

Both are set to sync every commit. They have no group commit, and SQLite lets one writer in at a
time, so more than one connection would only wait, or starve, on its lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, TypeVar

from bench.clients.base import Done, Endpoint, Got, OnError, Receipts

T = TypeVar("T")


class Library(Protocol):
    def put(self, count: int) -> None: ...

    def take(self, count: int) -> list[Any]: ...

    def finish(self, receipts: Receipts) -> None: ...


class EmbeddedConnection:
    def __init__(self, make: Callable[[], Library], on_error: OnError) -> None:
        self._on_error = on_error
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1)
        self._library = self._thread.submit(make).result()

    def send(self, count: int, then: Done) -> None:
        self._start(lambda: self._library.put(count), lambda _: then())

    def receive(self, count: int, then: Got) -> None:
        self._start(lambda: self._library.take(count), then)

    def ack(self, receipts: Receipts, then: Done) -> None:
        self._start(lambda: self._library.finish(receipts), lambda _: then())

    def close(self) -> None:
        self._thread.shutdown(wait=True)

    def _start(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        def done(future: Future[T]) -> None:
            self._loop.call_soon_threadsafe(self._finish, future, then)

        self._thread.submit(work).add_done_callback(done)

    def _finish(self, future: Future[T], then: Callable[[T], None]) -> None:
        error = future.exception()
        if error is None:
            then(future.result())
        else:
            self._on_error(f"{type(error).__name__}: {error}")


class EmbeddedClient:
    fill_batch = 10

    def __init__(self, endpoint: Endpoint, queue: str) -> None:
        self._folder = Path(str(endpoint["folder"])) / queue

    async def create_queue(self) -> None:
        self._folder.mkdir()

    async def drop_queue(self) -> None:
        """The folder goes with the run."""

    async def connect(
        self, on_error: OnError, batch: int, *, waits: bool = False
    ) -> EmbeddedConnection:
        return EmbeddedConnection(self.library, on_error)

    def library(self) -> Library:
        raise NotImplementedError
