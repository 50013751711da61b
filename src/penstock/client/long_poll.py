"""Waiting for what the broker reports: one request after the other, each waits at the broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from penstock.client.backend import Backend
from penstock.client.channel import Ask, Flow, Pause
from penstock.domain.duration import Duration, as_ms
from penstock.ports.clock import Clock

Found = TypeVar("Found")

_LONGEST_MS = 10_000  # of one request
_PAUSE_S = 0.5  # after one that was answered early, because the server is stopping


def long_poll(
    backend: Backend,
    clock: Clock,
    timeout: Duration | None,
    *,
    ask: Callable[[int], Ask],
    what_runs: Callable[[Found], str | None],
) -> Flow[Found]:
    """Ask until nothing runs; raises TimeoutError, at once if the backend cannot wait.

    `ask`: the request that waits so many milliseconds.  `what_runs`: the text of the error, None
    if it is over.  `clock`: that of this machine.
    """
    until = None if timeout is None else clock.now() + as_ms("timeout", timeout)
    longest_ms = _LONGEST_MS
    if backend.limits is not None:
        longest_ms = min(longest_ms, backend.limits.max_wait_ms)
    while True:
        asked_at = clock.now()
        left_ms = longest_ms if until is None else max(until - asked_at, 0)
        wait_ms = min(left_ms, longest_ms) if backend.can_wait else 0
        found: Found = yield ask(wait_ms)
        running = what_runs(found)
        if running is None:
            return found
        now = clock.now()
        if not backend.can_wait or (until is not None and now >= until):
            raise TimeoutError(running)
        if now - asked_at < wait_ms // 2:
            yield Pause(_PAUSE_S)
