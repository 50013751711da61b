"""Claims that wait, in threads of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from time import monotonic
from typing import Any, TypeVar

from tests.edge.api import Api
from tests.edge.conftest import InBackground

T = TypeVar("T")

SOON_S = 10.0  # a wake-up takes a millisecond; without one it takes LONG_MS
LONG_MS = 20_000
_STEP_S = 0.002
_PATIENCE_S = 60.0  # for what takes a moment, on a machine that is busy


class Waiting:
    """Started claims of one queue; each is answered with the messages it got."""

    def __init__(self, api: Api, queue: str, in_background: InBackground) -> None:
        self._api = api
        self._queue = queue
        self._in_background = in_background

    def start(self, count: int = 1, **wanted: Any) -> list[Future[list[dict[str, Any]]]]:
        """Returns when all of them wait."""
        before = waiting_claims(self._api)
        wanted = {"wait_ms": LONG_MS, **wanted}
        claims = [self._in_background(self._api.claim, self._queue, **wanted) for _ in range(count)]
        eventually(lambda: waiting_claims(self._api) == before + count)
        return claims


def waiting_claims(api: Api) -> int:
    return int(api.get("/v1/stats")["waiting_claims"])


def eventually(look: Callable[[], T], *, within_s: float = _PATIENCE_S) -> T:
    """For what another thread or process does in its own time: what is seen once it is there."""
    until = monotonic() + within_s
    while not (seen := look()):
        assert monotonic() < until, "it did not happen in time"
        threading.Event().wait(_STEP_S)
    return seen
