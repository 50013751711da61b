"""What all connections of a server share, and who of them has been waited for long enough."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec

from penstock.domain.errors import PenstockError
from penstock.edge.server.heads import Heads
from penstock.edge.server.request import Handler, Request, Response

MOST_HELD_BYTES = 128 * 1024 * 1024


class Connection(Protocol):
    deadline: float  # by the loop's clock

    @property
    def is_idle(self) -> bool: ...

    def drain(self) -> None:
        """Close now if idle, else after the answer."""
        ...

    def abort(self) -> None: ...


class Unsent(msgspec.Struct):
    """What is left of an answer."""

    measure: Callable[[], int]
    size: int  # when it was measured last


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
        max_held_bytes: int = MOST_HELD_BYTES,
    ) -> None:
        self.handle = handle
        self.refuse = refuse
        self.max_body_bytes = max_body_bytes
        self.receive_timeout = receive_timeout
        self.idle_timeout = idle_timeout
        self.max_connections = max_connections
        self.max_held_bytes = max_held_bytes
        # Bodies in any coding, for those who only hand them on: by the target of a request.
        self.takes_coded: Callable[[bytes], bool] = lambda target: False
        self.held_bytes = 0  # of bodies that are still coming in
        self.connections: set[Connection] = set()
        self._unsent: dict[Connection, Unsent] = {}  # answers that wait for clients, longest first
        self.heads = Heads()
        self.is_draining = False
        self.left = asyncio.Event()  # set when the last connection goes
        self.date = b""
        self.now = asyncio.get_running_loop().time

    def make_room(self) -> bool:
        """For one more connection: at the limit, the longest idle one is closed for it.

        So that clients which only keep connections open cannot shut out others, health checks
        among them.  False: all of them are in use.
        """
        if len(self.connections) < self.max_connections:
            return True
        idle = [connection for connection in self.connections if connection.is_idle]
        if not idle:
            return False
        longest = min(idle, key=lambda connection: connection.deadline)
        self.connections.discard(longest)  # now: what is closing no longer counts
        longest.drain()
        return True

    def leave(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.forget_unsent(connection)
        if not self.connections:
            self.left.set()

    def note_unsent(self, connection: Connection, measure: Callable[[], int]) -> None:
        """A client reads slower than we answer; `measure` returns the bytes that are left."""
        self._unsent[connection] = Unsent(measure, measure())
        if sum(one.size for one in self._unsent.values()) > self.max_held_bytes:
            self._cut_unread(connection)

    def forget_unsent(self, connection: Connection) -> None:
        self._unsent.pop(connection, None)

    def _cut_unread(self, newest: Connection) -> None:
        """Cut connections until what is left of the answers fits into the memory meant for them.

        First those that have read nothing meanwhile, longest first: clients which ask for much and
        read nothing can neither fill the memory nor shut out others.
        """
        left = {connection: one.measure() for connection, one in self._unsent.items()}
        total = sum(left.values())
        for connection in sorted(
            left, key=lambda one: (one is newest, left[one] < self._unsent[one].size)
        ):
            if total <= self.max_held_bytes:
                self._unsent[connection].size = left[connection]
            else:
                total -= left[connection]
                self.forget_unsent(connection)
                connection.abort()

    def sweep(self) -> None:
        """Cut off those who dawdle; called about once a second."""
        now = self.now()
        for connection in list(self.connections):
            if connection.deadline < now:
                connection.abort()
