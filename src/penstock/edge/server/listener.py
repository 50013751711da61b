"""The listener: opens the port, cuts off stalled connections, and drains on stop."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from email.utils import formatdate

from penstock.edge.server.protocol import HttpConnection
from penstock.edge.server.tls import TlsListener, listen
from penstock.edge.server.traffic import Traffic
from penstock.ports.clock import Clock
from penstock.supervision.health import NodeHealth, NodePart
from penstock.supervision.threads import start_supervised

SWEEP_SECONDS = 1.0
_BACKLOG = 1024


class HttpServer:
    def __init__(self, traffic: Traffic, clock: Clock, health: NodeHealth | None = None) -> None:
        self._health = health or NodeHealth()
        self._traffic = traffic
        self._clock = clock
        self._server: asyncio.Server | TlsListener | None = None
        self._sweeper: asyncio.Task[None] | None = None

    async def start(
        self,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        shares_port: bool = False,
    ) -> int:
        """Listen; returns the bound port, which differs from `port` if that is 0.

        `shares_port`: other processes listen on it, too, and the kernel spreads the connections.
        """
        loop = asyncio.get_running_loop()
        self._set_date()
        if tls is None:
            server = await loop.create_server(
                lambda: HttpConnection(self._traffic),
                host,
                port,
                backlog=_BACKLOG,
                reuse_address=True,
                reuse_port=shares_port,
            )
            self._server, listening = server, list(server.sockets)
        else:
            listening = await listen(host, port, backlog=_BACKLOG, shares_port=shares_port)
            self._server = TlsListener(listening, tls, self._traffic)
        bound: int = listening[0].getsockname()[1]
        self._sweeper = start_supervised("sweeper", self._sweep, health=self._health)
        return bound

    async def stop(self, *, drain_ms: int) -> None:
        """Accept no more connections, let running requests finish, then close the rest."""
        if self._server is None or self._sweeper is None:
            return
        self._server.close()
        self._traffic.is_draining = True
        self._traffic.left.clear()
        for connection in list(self._traffic.connections):
            connection.drain()
        if self._traffic.connections:
            # Each connection closes after its response; those that take longer are cut off.
            with suppress(TimeoutError):
                async with asyncio.timeout(drain_ms / 1000):
                    await self._traffic.left.wait()
        for connection in list(self._traffic.connections):
            connection.abort()
        self._sweeper.cancel()

    async def _sweep(self, part: NodePart) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._set_date()
            self._traffic.sweep()
            part.moves += 1

    def _set_date(self) -> None:
        self._traffic.date = formatdate(self._clock.now() / 1000, usegmt=True).encode()
