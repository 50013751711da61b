"""How a client reaches a broker: over HTTP, or in its own process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from penstock.api.operation import Operation, QueryRecord

Answer = TypeVar("Answer")
Body = msgspec.Struct | Mapping[str, Any]


class Channel(Protocol):
    """Safe to share between threads."""

    def request(
        self,
        operation: Operation[Answer],
        body: Body | None = None,
        query: QueryRecord | None = None,
        *,
        only_new: bool = False,
        tx: object = None,
        **path: str,
    ) -> Answer:
        """Return the broker's answer; raises its error, or Unreachable.

        With `only_new` a PUT must not change what exists.  `tx` is the caller's own transaction, in
        which everything is read and written.
        """
        ...

    async def request_async(
        self,
        operation: Operation[Answer],
        body: Body | None = None,
        query: QueryRecord | None = None,
        *,
        only_new: bool = False,
        tx: object = None,
        **path: str,
    ) -> Answer:
        """The same without blocking the event loop."""
        ...
