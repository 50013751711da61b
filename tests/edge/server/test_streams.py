"""Streamed responses: slow readers, lost readers, and a shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from math import inf

from penstock.edge.server.errors import error_response
from penstock.edge.server.protocol import HttpConnection
from penstock.edge.server.request import Request, Respond, Response
from penstock.edge.server.stream import Stream
from penstock.edge.server.traffic import Traffic
from tests.edge.server.wire import Wire

ASK = b"GET /news HTTP/1.1\r\nhost: localhost\r\n\r\n"


class Newsroom:
    def __init__(self) -> None:
        self.lost: list[Stream] = []
        self.stream = Stream(on_lost=self.lost.append)
        self.wire = Wire()
        self.traffic = Traffic(
            self.handle,
            refuse=lambda request, error: error_response(error),
            max_body_bytes=1_000,
            receive_timeout=5,
            idle_timeout=5,
            max_connections=5,
        )
        self.connection = HttpConnection(self.traffic)

    def handle(self, request: Request, respond: Respond) -> Awaitable[Response]:
        async def answer() -> Response:
            return self.stream

        return answer()

    async def open(self) -> None:
        self.connection.connection_made(self.wire)
        self.connection.data_received(ASK)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    @property
    def body(self) -> bytes:
        return b"".join(self.wire.written).partition(b"\r\n\r\n")[2]


def in_newsroom(what: Callable[[Newsroom], Awaitable[None]]) -> None:
    async def run() -> None:
        await what(Newsroom())

    asyncio.run(run())


def test_data_that_was_sent_before_the_connection_was_ready_comes_first() -> None:
    async def do(room: Newsroom) -> None:
        room.stream.send(b"one ")
        await room.open()
        room.stream.send(b"two")

        head = room.wire.written[0]
        assert head.startswith(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
        assert b"content-length" not in head
        assert room.body == b"one two"
        assert room.connection.deadline == inf, "it may be quiet for as long as it likes"

    in_newsroom(do)


def test_one_that_ended_before_it_began_ends_at_once() -> None:
    async def do(room: Newsroom) -> None:
        room.stream.send(b"all")
        room.stream.end()
        await room.open()

        assert (room.body, room.wire.is_open) == (b"all", False)

    in_newsroom(do)


def test_a_reader_that_does_not_keep_up_misses_some_and_is_cut_off_in_time() -> None:
    async def do(room: Newsroom) -> None:
        await room.open()
        room.stream.send(b"a")
        room.connection.pause_writing()
        room.stream.send(b"missed")
        assert room.connection.deadline < inf, "the sweeper will come"

        room.connection.resume_writing()
        room.stream.send(b"b")

        assert room.body == b"ab"
        assert room.connection.deadline == inf

    in_newsroom(do)


def test_a_disconnect_is_reported_once() -> None:
    async def do(room: Newsroom) -> None:
        await room.open()
        room.connection.connection_lost(None)
        room.stream.lose()
        room.stream.send(b"after the end")

        assert room.lost == [room.stream]

    in_newsroom(do)


def test_a_stop_ends_it_whether_its_reader_reads_or_not() -> None:
    async def do(room: Newsroom) -> None:
        await room.open()
        room.connection.drain()
        assert not room.wire.is_open

        deaf = Newsroom()
        await deaf.open()
        deaf.connection.pause_writing()
        deaf.connection.drain()
        assert not deaf.wire.is_open

    in_newsroom(do)
