"""Limits how many messages per second a command sends."""

from __future__ import annotations

from threading import Event

from penstock.domain.queue import rate as buckets
from penstock.domain.queue.rate import Rate
from penstock.ports.clock import Clock


class Throttle:
    """Token bucket with bursts of `most`; without a rate it never waits."""

    def __init__(self, per_second: int | None, clock: Clock, pause: Event | None = None) -> None:
        self.most = 200 if per_second is None else max(1, min(200, per_second // 10))
        self._rate = None if per_second is None else Rate(per_second, burst=self.most)
        self._clock = clock
        self._pause = pause or Event()
        if self._rate is not None:
            self._bucket = buckets.full(self._rate, now=clock.now())

    def wait_for(self, count: int) -> None:
        """Wait until `count` messages, at most `most`, may be sent."""
        if self._rate is None:
            return
        now = self._clock.now()
        wait_ms = buckets.available_at(self._bucket, self._rate, count, now=now) - now
        if wait_ms > 0:
            self._pause.wait(wait_ms / 1000)
        self._bucket = buckets.spend(self._bucket, self._rate, count, now=self._clock.now())
