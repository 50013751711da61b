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
        **path: str,
    ) -> Answer:
        """Raises the error that the broker answered with, or Unreachable.

        With `only_new` a PUT must not change what exists.
        """
        ...
