"""A handler that raises gives its caller a 500 and does not affect other requests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest
import uvloop

from penstock.edge.server.errors import error_response
from penstock.edge.server.listener import HttpServer
from penstock.edge.server.request import Request, Respond, Response
from penstock.edge.server.traffic import Traffic
from tests.clocks import ManualClock
from tests.edge.raw import Raw, request

Handle = Callable[[Request, Respond], Awaitable[Response] | None]

PATIENCE_S = 60


class Listener:
    """A listener with one handler behind it."""

    def __init__(self, handle: Handle) -> None:
        self.port = 0
        self._handle = handle
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=lambda: uvloop.run(self._serve()))

    def start(self) -> int:
        self._thread.start()
        assert self._is_ready.wait(PATIENCE_S)
        return self.port

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    async def _serve(self) -> None:
        limits = {"receive_timeout": 5, "idle_timeout": 5, "max_connections": 9}
        traffic = Traffic(
            self._handle,
            refuse=lambda request, error: error_response(error),
            max_body_bytes=1_000,
            **limits,
        )
        server = HttpServer(traffic, ManualClock())
        self.port = await server.start("127.0.0.1", 0)
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._is_ready.set()
        await self._stop.wait()
        await server.stop(drain_ms=1_000)


@contextmanager
def serving(handle: Handle) -> Iterator[int]:
    """Start it; yields the port."""
    listener = Listener(handle)
    yield listener.start()
    listener.stop()


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
def test_a_bug_gets_a_response_and_the_connection_stays_open(broken: Handle) -> None:
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


def test_a_response_after_the_client_has_disconnected_is_not_an_error() -> None:
    answer: list[Respond] = []
    asked_for = threading.Event()

    def handle(asked: Request, respond: Respond) -> Awaitable[Response] | None:
        if asked.path == "/slow":
            answer.append(respond)
            asked_for.set()
            return None
        answer[0](Response(200, b"{}"))  # on the loop, like all answers
        respond(Response(200, b"{}"))
        return None

    with serving(handle) as port:
        with Raw(port) as wire:
            wire.send(request("GET", "/slow"))
            assert asked_for.wait(PATIENCE_S)
        with Raw(port) as wire:
            assert wire.ask(request("GET", "/")).status == 200
