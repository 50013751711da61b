"""litequeue and persist-queue, each set to sync every commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.clients.base import Receipts
from bench.clients.embedded import EmbeddedClient, Library
from bench.payload import BODY

TEXT = BODY.decode()


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
        # Its own default is FULL too; said again, because the row is worth nothing without it.
        for connection in (self._queue._putter, self._queue._getter):
            assert connection is not None
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
            if self._queue.ack(id=int(receipt)) is None:
                raise RuntimeError(f"{receipt!r} could not be finished")
