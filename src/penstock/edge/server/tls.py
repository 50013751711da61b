"""The TLS listener: counts connections, and sets their deadlines, as soon as they are accepted.

asyncio's own server reports a connection only after its handshake.  Until then it would not count,
and a silent client could use up the process's file descriptors.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from functools import partial

from penstock.edge.server.protocol import HttpConnection
from penstock.edge.server.traffic import Traffic

_AT_ONCE = 100  # connections accepted per iteration of the event loop
_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE_S = 1.0  # delay before the next attempt

_log = logging.getLogger(__name__)


class Handshake(asyncio.Transport):
    """The transport of a connection during its handshake; closing it ends the handshake."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        super().__init__()
        self._task = task

    def close(self) -> None:
        self._task.cancel()

    def abort(self) -> None:
        self._task.cancel()

    def is_closing(self) -> bool:
        return self._task.done() or self._task.cancelling() > 0


async def listen(
    host: str, port: int, *, backlog: int, shares_port: bool = False
) -> list[socket.socket]:
    """Open one socket for each address of the host."""
    loop = asyncio.get_running_loop()
    flags = socket.AI_PASSIVE
    found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=flags)
    listening = [
        socket.create_server(address, family=family, backlog=backlog, reuse_port=shares_port)
        for family, address in dict.fromkeys((info[0], info[4]) for info in found)
    ]
    for one in listening:
        one.setblocking(False)
    return listening


class TlsListener:
    def __init__(
        self, listening: list[socket.socket], tls: ssl.SSLContext, traffic: Traffic
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listening = listening
        self._tls = tls
        self._traffic = traffic
        self._tasks: set[asyncio.Task[None]] = set()
        for one in listening:
            self._loop.add_reader(one, self._accept, one)

    def close(self) -> None:
        """Accept no more connections; open ones remain counted."""
        for one in self._listening:
            self._loop.remove_reader(one)
            one.close()
        self._listening = []

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                accepted, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_FILES:
                    raise
                _log.warning("cannot accept connections, retrying: %s", error)
                self._loop.remove_reader(listening)
                self._loop.call_later(_PAUSE_S, self._resume, listening)
                return
            self._take(accepted)

    def _resume(self, listening: socket.socket) -> None:
        if listening in self._listening:
            self._loop.add_reader(listening, self._accept, listening)

    def _take(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        if not self._traffic.make_room():
            _log.debug("refused a TLS connection: all connections are in use")
            accepted.close()  # the client expects TLS, not a plain-text response
            return
        connection = HttpConnection(self._traffic)
        task = self._loop.create_task(self._shake_hands(accepted, connection))
        connection.await_handshake(Handshake(task))
        self._tasks.add(task)
        task.add_done_callback(partial(self._end, accepted, connection))

    async def _shake_hands(self, accepted: socket.socket, connection: HttpConnection) -> None:
        await self._loop.connect_accepted_socket(
            lambda: connection,
            accepted,
            ssl=self._tls,
            ssl_handshake_timeout=self._traffic.receive_timeout,
        )

    def _end(
        self, accepted: socket.socket, connection: HttpConnection, task: asyncio.Task[None]
    ) -> None:
        """Clean up; also called if the task was cancelled before it started."""
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or error is not None:
            self._traffic.leave(connection)
            accepted.close()
        if isinstance(error, OSError):
            _log.debug("TLS handshake aborted: %s", error)
        elif error is not None:
            _log.error("TLS handshake failed", exc_info=error)
