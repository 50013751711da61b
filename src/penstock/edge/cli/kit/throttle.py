"""Not more than so many in a second."""

from __future__ import annotations

from threading import Event

from penstock.domain.queue import rate as pace
from penstock.domain.queue.rate import Rate
from penstock.ports.clock import Clock


class Throttle:
    """Without a rate nobody waits."""

    def __init__(self, per_second: int | None, clock: Clock, pause: Event | None = None) -> None:
        self.most = 200 if per_second is None else max(1, min(200, per_second // 10))  # at a time
        self._rate = None if per_second is None else Rate(per_second, burst=self.most)
        self._clock = clock
        self._pause = pause or Event()
        if self._rate is not None:
            self._bucket = pace.full(self._rate, now=clock.now())

    def wait_for(self, count: int) -> None:
        """Until so many, `most` at the most, may go."""
        if self._rate is None:
            return
        now = self._clock.now()
        wait_ms = pace.available_at(self._bucket, self._rate, count, now=now) - now
        if wait_ms > 0:
            self._pause.wait(wait_ms / 1000)
        self._bucket = pace.spend(self._bucket, self._rate, count, now=self._clock.now())
