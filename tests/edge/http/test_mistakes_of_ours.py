"""A handler that breaks costs its caller an answer 500, and nobody else anything."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest
import uvloop

from penstock.edge.http.protocol import Traffic
from penstock.edge.http.request import Request, Respond, Response
from penstock.edge.http.server import HttpServer
from tests.clocks import ManualClock
from tests.edge.raw import Raw, request

Handle = Callable[[Request, Respond], Awaitable[Response] | None]


@contextmanager
def serving(handle: Handle) -> Iterator[int]:
    """A listener with one handler behind it and nothing else; gives its port."""
    ready, port = threading.Event(), 0

    async def serve() -> None:
        nonlocal port, stop, loop
        traffic = Traffic(
            handle, max_body_bytes=1_000, receive_timeout=5, idle_timeout=5, max_connections=9
        )
        server = HttpServer(traffic, ManualClock())
        port = await server.start("127.0.0.1", 0)
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        ready.set()
        await stop.wait()
        await server.stop(drain_ms=1_000)

    loop: asyncio.AbstractEventLoop | None = None
    stop: asyncio.Event | None = None
    thread = threading.Thread(target=lambda: uvloop.run(serve()))
    thread.start()
    assert ready.wait(5)
    try:
        yield port
    finally:
        assert loop is not None and stop is not None
        loop.call_soon_threadsafe(stop.set)
        thread.join(5)
        assert not thread.is_alive()


def at_once(asked: Request, respond: Respond) -> None:
    raise ValueError("secret")


async def later(asked: Request, respond: Respond) -> Response:
    await asyncio.sleep(0)
    raise ValueError("secret")


async def with_cancellation(asked: Request, respond: Respond) -> Response:
    async with asyncio.timeout(0):
        await asyncio.sleep(1)
    raise AssertionError


@pytest.mark.parametrize("broken", [at_once, later, with_cancellation])
def test_a_mistake_is_answered_and_the_connection_goes_on(broken: Handle) -> None:
    def handle(asked: Request, respond: Respond) -> Awaitable[Response] | None:
        if asked.path == "/broken":
            return broken(asked, respond)
        respond(Response(200, b"{}"))
        return None

    with serving(handle) as port, Raw(port) as wire:
        wire.send(request("GET", "/broken"), request("GET", "/fine"))

        failed, fine = wire.answer(), wire.answer()

    assert (failed.status, fine.status) == (500, 200)
    assert failed.body == b'{"error":{"code":"internal","message":"internal error"}}'


def test_an_answer_that_comes_after_the_client_has_gone_is_no_mistake() -> None:
    answer: list[Respond] = []
    asked_for, gone = threading.Event(), threading.Event()

    def handle(asked: Request, respond: Respond) -> Awaitable[Response] | None:
        if asked.path == "/slow":
            answer.append(respond)
            asked_for.set()
            return None
        answer[0](Response(200, b"{}"))  # on the loop, as all answers come
        gone.set()
        respond(Response(200, b"{}"))
        return None

    with serving(handle) as port:
        with Raw(port) as wire:
            wire.send(request("GET", "/slow"))
            assert asked_for.wait(5)
        with Raw(port) as wire:
            assert wire.ask(request("GET", "/")).status == 200
    assert gone.is_set()
