"""How a client reaches a broker: over HTTP, or in its own process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from penstock.api.operation import Operation, QueryRecord, RequestRecord

Answer = TypeVar("Answer")


class Channel(Protocol):
    """Safe to share between threads."""

    def request(
        self,
        operation: Operation[Answer],
        body: RequestRecord | Mapping[str, Any] | None = None,
        query: QueryRecord | None = None,
        **path: str,
    ) -> Answer:
        """Raises the error that the broker answered with, or Unreachable."""
        ...
