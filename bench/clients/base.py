"""What the load generator asks of a peer's client.

Callbacks, not coroutines: a task switch per answer would make the generator the bottleneck on the
second core. A connection has at most one request under way. A wrong answer goes to `on_error`,
never to the callback, and makes the whole measurement invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

Endpoint: TypeAlias = Mapping[str, str | int]
Receipts: TypeAlias = Sequence[bytes]
Done: TypeAlias = Callable[[], None]
Got: TypeAlias = Callable[[Receipts], None]
OnError: TypeAlias = Callable[[str], None]


class Connection(Protocol):
    def send(self, count: int, then: Done) -> None:
        """Sends `count` bodies; `then` once all of them are durable."""

    def receive(self, count: int, then: Got) -> None:
        """Takes up to `count` messages; `then` gets no receipts when there is nothing."""

    def ack(self, receipts: Receipts, then: Done) -> None:
        """Finishes what `receive` gave."""

    def close(self) -> None: ...


class Client(Protocol):
    """Made from an endpoint and a queue name in the generator's process."""

    @property
    def fill_batch(self) -> int:
        """How many bodies one request carries when a backlog is made."""

    async def create_queue(self) -> None: ...

    async def drop_queue(self) -> None: ...

    async def connect(self, on_error: OnError, batch: int, *, waits: bool = False) -> Connection:
        """A connection that will be asked for `batch` messages at a time.

        `waits`: `receive` waits some seconds for a message, as the peer's workers do.
        """
