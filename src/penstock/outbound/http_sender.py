"""Sends HTTP requests from one thread with an event loop, however many queues there are.

Connections are pooled and kept alive briefly.  An endpoint may close a connection just when it is
reused; a request that fails like this, before any byte of a response, is sent again at once on a
new connection, and both count as one attempt.  Redirects are not followed: only a route decides
where a delivery goes.  The status decides the outcome; the body is read only as far as needed to
reuse the connection.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import aiohttp
import uvloop
from yarl import URL

from penstock.domain.delivery.addresses import AddressDenied, AddressFilter
from penstock.ports.clock import Clock
from penstock.ports.sender import PushRequest, PushResponse
from penstock.supervision.health import NodeHealth
from penstock.supervision.threads import SupervisedThread

OnResponse = Callable[[PushResponse], None]

_log = logging.getLogger("penstock.push")
_ABORTED = PushResponse(error="aborted because this node stops", is_broken_off=True)
_READ_BYTES = 64 * 1024  # of a response; its connection is closed if there is more
_READ_SECONDS = 5.0
_EXCERPT_CHARS = 500
_CLOSED_BY_PEER = (errno.ECONNRESET, errno.EPIPE)
_MAX_REFUSALS = 1_000  # distinct addresses that are logged
# Headers that the library would add; a delivery has only the headers its sender gave it.
_NOT_OURS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


class HttpSender:
    def __init__(
        self,
        clock: Clock,
        *,
        connections: int,
        keep_alive_ms: int,
        denied: str = "",
        health: NodeHealth | None = None,
    ) -> None:
        """`denied`: networks that are never contacted, in addition to the built-in ones."""
        self._clock = clock
        self._address_filter = AddressFilter(denied)
        self._connections = connections
        self._keep_alive_ms = keep_alive_ms
        self._loop = uvloop.new_event_loop()
        self._waiting: deque[tuple[PushRequest, OnResponse]] = deque()
        self._in_flight: set[asyncio.Task[None]] = set()
        self._refusals: set[str] = set()
        self._is_open = True
        self._is_running = False  # whether the loop takes requests
        self._sessions: list[aiohttp.ClientSession] = []
        self._thread = SupervisedThread("penstock-sender", self._run, health=health or NodeHealth())
        self._is_ready = threading.Event()
        self._thread.start()
        self._is_ready.wait()

    def send(self, request: PushRequest, then: OnResponse) -> None:
        self._waiting.append((request, then))
        try:
            self._loop.call_soon_threadsafe(self._begin_waiting)
        except RuntimeError:  # the loop is closed; if it failed, the next one begins with these
            if not self._is_open:
                self._abort_waiting()

    def close(self) -> None:
        """Close the client; may be called twice."""
        if self._thread.is_alive():
            self._is_open = False
            with suppress(RuntimeError):  # the loop has just failed
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _run(self) -> None:
        """If the loop fails, requests in flight are aborted, and the next call gets a new loop."""
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._open())
            self._is_ready.set()
            if self._is_open:
                self._is_running = True
                loop.call_soon(self._begin_waiting)
                loop.run_forever()
        finally:
            self._is_ready.set()
            self._is_running = False
            try:
                loop.run_until_complete(self._stop())
            finally:
                if self._is_open:
                    self._loop = uvloop.new_event_loop()
                loop.close()
                if not self._is_open:
                    self._abort_waiting()

    async def _open(self) -> None:
        self._pooled = self._session(keepalive_timeout=self._keep_alive_ms / 1000)
        self._fresh = self._session(force_close=True)  # never takes a connection from a pool

    def _session(self, **connector: Any) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._connections, socket_factory=self._socket, **connector
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=_NOT_OURS,
            trace_configs=[_trace_reuse()],
        )
        self._sessions.append(session)
        # The library would retry some methods when a connection breaks.  Only we may retry: if a
        # circuit permits one probe, exactly one request may be sent.
        session._retry_connection = False
        return session

    def _socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Check the resolved address here, where it is known which one the connection uses."""
        family, kind, protocol, _, address = info
        self._address_filter.check(address[0])
        return socket.socket(family, kind, protocol)

    def _begin_waiting(self) -> None:
        while self._is_running and self._waiting:
            task = self._loop.create_task(self._exchange(*self._waiting.popleft()))
            self._in_flight.add(task)
            task.add_done_callback(self._in_flight.discard)

    def _abort_waiting(self) -> None:
        while True:
            try:
                _, then = self._waiting.popleft()
            except IndexError:  # several threads may abort at once
                return
            then(_ABORTED)

    async def _stop(self) -> None:
        for task in list(self._in_flight):
            task.cancel()
        await asyncio.gather(*self._in_flight, return_exceptions=True)
        while self._sessions:
            await self._sessions.pop().close()

    async def _exchange(self, request: PushRequest, then: OnResponse) -> None:
        began = self._clock.now()
        try:
            then(await self._ask(request, began))
        except asyncio.CancelledError:
            then(_ABORTED)
            raise
        except TimeoutError:
            then(self._failure(began, f"no answer within {request.timeout_ms} ms"))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            self._log_refusal(error)
            then(self._failure(began, _text(error)))
        except Exception as error:  # without a response its queue would wait forever
            _log.exception("a request to %s failed", request.url)
            then(self._failure(began, _text(error)))

    def _log_refusal(self, error: Exception) -> None:
        """Log each address once: a delivery is retried every few seconds until it expires."""
        cause = getattr(error, "os_error", None)
        if isinstance(cause, AddressDenied) and str(cause) not in self._refusals:
            if len(self._refusals) < _MAX_REFUSALS:
                self._refusals.add(str(cause))
            _log.warning("%s", cause)

    async def _ask(self, request: PushRequest, began: int) -> PushResponse:
        used = SimpleNamespace(is_reused=False)
        try:
            return await self._ask_on(self._pooled, request, began, used)
        except aiohttp.ClientConnectionError as error:
            if not used.is_reused or not _is_unanswered(error):
                raise
        return await self._ask_on(self._fresh, request, began, used)

    async def _ask_on(
        self,
        session: aiohttp.ClientSession,
        request: PushRequest,
        began: int,
        used: SimpleNamespace,
    ) -> PushResponse:
        left_ms = max(1, request.timeout_ms - (self._clock.now() - began))
        asked = session.request(
            request.method,
            URL(request.url, encoded=True),
            headers=list(request.headers),
            data=request.payload,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=left_ms / 1000),
            trace_request_ctx=used,
        )
        async with asked as answer:
            took_ms = self._clock.now() - began
            body = await _read(answer)
            return PushResponse(
                status=answer.status,
                took_ms=took_ms,
                retry_after=answer.headers.get("Retry-After"),
                excerpt=None if answer.ok else _excerpt(body),
            )

    def _failure(self, began: int, why: str) -> PushResponse:
        return PushResponse(took_ms=self._clock.now() - began, error=why)


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    """The body up to a limit; if there is more, the connection is closed."""
    body = b""
    try:
        async with asyncio.timeout(_READ_SECONDS):
            while len(body) < _READ_BYTES:
                part = await answer.content.read(_READ_BYTES)
                if not part:
                    return body
                body += part
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass
    answer.close()
    return body


def _excerpt(body: bytes) -> str | None:
    text = body[: 4 * _EXCERPT_CHARS].decode(errors="replace").strip()
    return text[:_EXCERPT_CHARS] or None


def _trace_reuse() -> aiohttp.TraceConfig:
    """Mark in a request's context whether its connection was used before."""

    async def mark_reused(session: aiohttp.ClientSession, context: Any, _: Any) -> None:
        context.trace_request_ctx.is_reused = True

    trace = aiohttp.TraceConfig()
    trace.on_connection_reuseconn.append(mark_reused)
    return trace


def _is_unanswered(error: aiohttp.ClientConnectionError) -> bool:
    """True if the endpoint closed the connection before it sent any byte."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return isinstance(error.message, str)  # otherwise it is the head of a response
    return isinstance(error, OSError) and error.errno in _CLOSED_BY_PEER


def _text(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return _connect_error(error)
    text = str(error) or type(error).__name__
    return text if isinstance(error, OSError) else f"{type(error).__name__}: {text}"


def _connect_error(error: aiohttp.ClientConnectorError) -> str:
    cause: Exception = getattr(error, "os_error", error)
    if isinstance(cause, AddressDenied):
        return str(cause)
    return (
        f"cannot connect to {error.host}:{error.port}: {getattr(cause, 'strerror', None) or cause}"
    )
