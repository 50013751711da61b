"""Queue libraries that live in the caller's process: no server, one thread per connection.

Both are set to sync every commit. They have no group commit, and SQLite lets one writer in at a
time, so more connections only wait (or starve) on its lock: `most_connections` is what served best.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, TypeVar

from bench.clients.base import Done, Endpoint, Got, OnError, Receipts
from bench.payload import BODY

T = TypeVar("T")
TEXT = BODY.decode()


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
    most_connections = 1
    fill_batch = 10

    def __init__(self, endpoint: Endpoint, queue: str) -> None:
        self._folder = Path(str(endpoint["folder"])) / queue

    async def create_queue(self) -> None:
        self._folder.mkdir()

    async def drop_queue(self) -> None:
        """The folder goes with the run."""

    async def connect(self, on_error: OnError, batch: int) -> EmbeddedConnection:
        return EmbeddedConnection(self.library, on_error)

    def library(self) -> Library:
        raise NotImplementedError


class LiteQueueClient(EmbeddedClient):
    def library(self) -> Library:
        return _LiteQueue(self._folder / "queue.db")


class PersistQueueClient(EmbeddedClient):
    def library(self) -> Library:
        return _PersistQueue(self._folder)


class _LiteQueue:
    def __init__(self, path: Path) -> None:
        from litequeue import LiteQueue

        self._queue = LiteQueue(path, timeout=60)
        self._queue.conn.execute("PRAGMA synchronous = FULL")

    def put(self, count: int) -> None:
        with self._queue.transaction():
            for _ in range(count):
                self._queue.put(TEXT)

    def take(self, count: int) -> list[Any]:
        popped = [self._queue.pop() for _ in range(count)]
        return [message.message_id for message in popped if message is not None]

    def finish(self, receipts: Receipts) -> None:
        before = self._queue.conn.total_changes
        with self._queue.transaction():
            for receipt in receipts:
                self._queue.done(receipt)
        if self._queue.conn.total_changes - before != len(receipts):
            raise RuntimeError("not all could be finished")


class _PersistQueue:
    def __init__(self, folder: Path) -> None:
        from persistqueue import SQLiteAckQueue

        self._queue = SQLiteAckQueue(str(folder), multithreading=True)
        for connection in {self._queue._putter, self._queue._getter}:
            connection.execute("PRAGMA synchronous = FULL")

    def put(self, count: int) -> None:
        for _ in range(count):
            self._queue.put(TEXT)

    def take(self, count: int) -> list[Any]:
        from persistqueue import Empty

        taken = []
        for _ in range(count):
            try:
                taken.append(self._queue.get(block=False, raw=True)["pqid"])
            except Empty:
                break
        return taken

    def finish(self, receipts: Receipts) -> None:
        for receipt in receipts:
            if self._queue.ack(id=receipt) is None:
                raise RuntimeError(f"{receipt!r} could not be finished")
