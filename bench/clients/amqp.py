"""RabbitMQ through raw AMQP 0-9-1: durable queue, persistent messages, publisher confirms.

A client library would cost the generator more than our own HTTP client does, and flatter us.
"""

from __future__ import annotations

import asyncio

from bench.clients import amqp_frames as frames
from bench.clients.amqp_connection import AmqpConnection
from bench.clients.base import Endpoint, OnError


class AmqpClient:
    fill_batch = 100

    def __init__(self, endpoint: Endpoint, queue: str) -> None:
        self._host, self._port = str(endpoint["host"]), int(endpoint["port"])
        self._queue_type = str(endpoint["queue_type"])
        self._queue = queue

    async def create_queue(self) -> None:
        arguments = {"x-queue-type": self._queue_type}
        await self._once(frames.declare(self._queue, arguments), frames.DECLARE_OK)

    async def drop_queue(self) -> None:
        await self._once(frames.delete(self._queue), frames.DELETE_OK)

    async def connect(
        self, on_error: OnError, batch: int, *, waits: bool = False
    ) -> AmqpConnection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: AmqpConnection(self._queue, on_error), self._host, self._port
        )
        await connection.ask(frames.PROTOCOL, frames.START)
        await connection.ask(frames.start_ok(), frames.TUNE)
        await connection.ask(frames.tune_ok() + frames.open_host(), frames.OPEN_OK)
        await connection.ask(frames.open_channel(), frames.CHANNEL_OPEN_OK)
        await connection.ask(frames.confirm_select(), frames.CONFIRM_OK)
        return connection

    async def _once(self, raw: bytes, reply: tuple[int, int]) -> None:
        connection = await self.connect(_refuse, 1)
        try:
            await connection.ask(raw, reply)
        finally:
            connection.close()


def _refuse(text: str) -> None:
    raise RuntimeError(text)
