"""State that all connections of a server share: limits, buffered bytes, deadlines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec

from penstock.domain.errors import PenstockError
from penstock.edge.server.request import Handler, Request, RequestHeadCache, Response

MAX_BUFFERED_BYTES = 128 * 1024 * 1024


class Connection(Protocol):
    deadline: float  # on the loop's clock

    @property
    def is_idle(self) -> bool: ...

    def drain(self) -> None:
        """Close now if idle, otherwise after the response."""
        ...

    def abort(self) -> None: ...


class Unsent(msgspec.Struct):
    """The unsent rest of a response."""

    measure: Callable[[], int]
    size: int  # unsent bytes at the last measurement


class Traffic:
    def __init__(
        self,
        handle: Handler,
        *,
        refuse: Callable[[Request, PenstockError], Response],
        max_body_bytes: int,
        receive_timeout: float,
        idle_timeout: float,
        max_connections: int,
        max_buffered_bytes: int = MAX_BUFFERED_BYTES,
    ) -> None:
        self.handle = handle
        self.refuse = refuse
        self.max_body_bytes = max_body_bytes
        self.receive_timeout = receive_timeout
        self.idle_timeout = idle_timeout
        self.max_connections = max_connections
        self.max_buffered_bytes = max_buffered_bytes
        # Whether a request to this target may have an encoded body: deliveries keep theirs.
        self.accepts_encoded: Callable[[bytes], bool] = lambda target: False
        self.buffered_bytes = 0  # total of incomplete bodies
        self.connections: set[Connection] = set()
        self._unsent: dict[
            Connection, Unsent
        ] = {}  # responses that clients do not read, oldest first
        self.heads = RequestHeadCache()
        self.is_draining = False
        self.left = asyncio.Event()  # set when the last connection closes
        self.date = b""
        self.now = asyncio.get_running_loop().time

    def make_room(self) -> bool:
        """Make room by closing the connection that is idle longest; False if all are busy.

        Clients that merely keep connections open cannot lock out others, such as health checks.
        """
        if len(self.connections) < self.max_connections:
            return True
        idle = [connection for connection in self.connections if connection.is_idle]
        if not idle:
            return False
        longest = min(idle, key=lambda connection: connection.deadline)
        self.connections.discard(longest)  # a closing connection no longer counts
        longest.drain()
        return True

    def leave(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.forget_unsent(connection)
        if not self.connections:
            self.left.set()

    def note_unsent(self, connection: Connection, measure: Callable[[], int]) -> None:
        """Track a client that reads slowly; `measure` returns the number of unsent bytes."""
        self._unsent[connection] = Unsent(measure, measure())
        if sum(one.size for one in self._unsent.values()) > self.max_buffered_bytes:
            self._cut_unread(connection)

    def forget_unsent(self, connection: Connection) -> None:
        self._unsent.pop(connection, None)

    def _cut_unread(self, newest: Connection) -> None:
        """Cut connections until the unsent responses fit into their share of memory.

        Connections that have read nothing since the last measurement are cut first, the oldest
        first: clients that request much and read nothing can neither exhaust memory nor lock out
        others.
        """
        left = {connection: one.measure() for connection, one in self._unsent.items()}
        total = sum(left.values())
        for connection in sorted(
            left, key=lambda one: (one is newest, left[one] < self._unsent[one].size)
        ):
            if total <= self.max_buffered_bytes:
                self._unsent[connection].size = left[connection]
            else:
                total -= left[connection]
                self.forget_unsent(connection)
                connection.abort()

    def sweep(self) -> None:
        """Cut connections that are past their deadline; called about once a second."""
        now = self.now()
        for connection in list(self.connections):
            if connection.deadline < now:
                connection.abort()
