"""Claims that wait, in threads of their own."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from tests.edge.api import Api
from tests.edge.conftest import InBackground
from tests.support.waiting import eventually

SOON_S = 18.0  # a wake-up takes a millisecond; without one it takes LONG_MS
LONG_MS = 20_000


class Waiting:
    """Started claims of one queue; each is answered with its messages."""

    def __init__(self, api: Api, queue: str, in_background: InBackground) -> None:
        self._api = api
        self._queue = queue
        self._in_background = in_background

    def start(self, count: int = 1, **wanted: Any) -> list[Future[list[dict[str, Any]]]]:
        """Start; returns when all of them wait."""
        before = waiting_claims(self._api)
        wanted = {"wait_ms": LONG_MS, **wanted}
        claims = [self._in_background(self._api.claim, self._queue, **wanted) for _ in range(count)]
        eventually(lambda: waiting_claims(self._api) == before + count)
        return claims


def waiting_claims(api: Api) -> int:
    return int(api.get("/v1/stats")["waiting_claims"])
