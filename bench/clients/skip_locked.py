"""A queue by hand on PostgreSQL: insert, claim with SKIP LOCKED, delete; three transactions.

What a careful team writes in an afternoon: one table, one index, prepared statements, binary rows.
A claim hides the row for the lease time, as ours does, instead of holding a transaction open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import asyncpg

from bench.clients.base import Done, Endpoint, Got, OnError, Receipts
from bench.payload import BODY

TABLE = """
CREATE TABLE {0} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    visible_at timestamptz NOT NULL DEFAULT now(),
    body bytea NOT NULL
);
CREATE INDEX ON {0} (visible_at, id);
"""
INSERT = "INSERT INTO {0} (body) SELECT unnest($1::bytea[])"
CLAIM = """
UPDATE {0} SET visible_at = now() + interval '30 seconds'
 WHERE id IN (SELECT id FROM {0} WHERE visible_at <= now()
               ORDER BY visible_at, id LIMIT $1 FOR UPDATE SKIP LOCKED)
RETURNING id, body
"""
POLL_SECONDS = 0.005  # of a worker that found nothing
DELETE = "DELETE FROM {0} WHERE id = ANY($1::bigint[])"


class SkipLockedClient:
    fill_batch = 100

    def __init__(self, endpoint: Endpoint, queue: str) -> None:
        self._url = str(endpoint["url"])
        self._table = queue.replace("-", "_")

    async def create_queue(self) -> None:
        await self._run(TABLE.format(self._table))

    async def drop_queue(self) -> None:
        await self._run(f"DROP TABLE {self._table}")

    async def connect(
        self, on_error: OnError, batch: int, *, waits: bool = False
    ) -> SkipLockedConnection:
        connection = await asyncpg.connect(self._url)
        statements = [
            await connection.prepare(text.format(self._table)) for text in (INSERT, CLAIM, DELETE)
        ]
        return SkipLockedConnection(connection, statements, on_error, waits=waits)

    async def _run(self, text: str) -> None:
        connection = await asyncpg.connect(self._url)
        await connection.execute(text)
        await connection.close()


class SkipLockedConnection:
    def __init__(
        self, connection: Any, statements: list[Any], on_error: OnError, *, waits: bool = False
    ) -> None:
        self._waits = waits
        self._connection = connection
        self._insert, self._claim, self._delete = statements
        self._on_error = on_error
        # A reference, because the event loop itself keeps only a weak one.
        self._task: asyncio.Task[None] | None = None

    def send(self, count: int, then: Done) -> None:
        async def work() -> None:
            await self._insert.fetch([BODY] * count)
            self._check(self._insert, f"INSERT 0 {count}")
            then()

        self._start(work())

    def receive(self, count: int, then: Got) -> None:
        async def work() -> None:
            rows = await self._claim.fetch(count)
            if not rows and self._waits:
                await asyncio.sleep(POLL_SECONDS)
            then([row[0] for row in rows])

        self._start(work())

    def ack(self, receipts: Receipts, then: Done) -> None:
        async def work() -> None:
            await self._delete.fetch(receipts)
            self._check(self._delete, f"DELETE {len(receipts)}")
            then()

        self._start(work())

    def close(self) -> None:
        self._connection.terminate()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._task = asyncio.get_running_loop().create_task(self._guard(work))

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # whatever went wrong makes the run invalid
            self._on_error(f"{type(error).__name__}: {error}")

    def _check(self, statement: Any, expected: str) -> None:
        if statement.get_statusmsg() != expected:
            raise RuntimeError(f"{statement.get_statusmsg()} instead of {expected}")
