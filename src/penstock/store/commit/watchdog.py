"""One thread per store that checks about once a second that no request waits forever.

It times out requests and observes the parts of the node.  Nothing it calls blocks.  Its time is the
sum of its own pauses: on a machine that was asleep or is overloaded no request times out early.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Protocol

from penstock.domain.errors import OutcomeUnknown
from penstock.store.commit.requests import Pending, StoreRequest, fail_all, is_late, stamp
from penstock.supervision.health import NodeHealth
from penstock.supervision.threads import SupervisedThread

_LONGEST_TICK_MS = 1_000
_TICKS_PER_TIMEOUT = 20
_NEVER = 1 << 62


class RequestSource(Protocol):
    pending: Pending

    def unanswered(self) -> Iterable[StoreRequest]:
        """Requests that were taken but not yet answered."""
        ...


class Watchdog:
    def __init__(
        self, sources: Sequence[RequestSource], *, timeout_ms: int, health: NodeHealth
    ) -> None:
        self.timeout_ms = timeout_ms
        self._sources = list(sources)
        self._health = health
        self._now = 0
        self._is_closing = threading.Event()
        self._thread = SupervisedThread("penstock-watchdog", self._run, health=health)
        self._thread.start()

    def watch(self, source: RequestSource) -> None:
        """Time out the requests of this source, too."""
        self._sources.append(source)

    def look(self, now: int) -> None:
        """`now`: milliseconds of a monotonic clock."""
        for source in self._sources:
            source.pending.expire(now=now, timeout_ms=self.timeout_ms)
            self._expire_unanswered(list(source.unanswered()), now)
        self._health.look(now)
        self._thread.part.moves += 1

    def close(self) -> None:
        self._is_closing.set()
        self._thread.join()

    def _expire_unanswered(self, unanswered: list[StoreRequest], now: int) -> None:
        stamp(unanswered, now)
        late = [request for request in unanswered if is_late(request, now, self.timeout_ms)]
        for request in late:
            request.first_seen_at = _NEVER  # one answer is enough
        error = OutcomeUnknown(
            f"the store did not answer within {self.timeout_ms} ms;"
            " the request was started and may still be carried out"
        )
        fail_all(late, error)

    def _run(self) -> None:
        while True:
            tick_ms = max(min(self.timeout_ms // _TICKS_PER_TIMEOUT, _LONGEST_TICK_MS), 5)
            if self._is_closing.wait(tick_ms / 1000):
                return
            self._now += tick_ms
            self.look(self._now)
