"""Pending requests in order of arrival, and the timeout of those that wait too long.

A request is taken exactly once: by a connection, which starts it, or by `expire`, which answers
"not started".  So a caller that gets this answer may safely retry.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from penstock.domain.errors import OutcomeUnknown, StoreUnavailable
from penstock.store.commit.answers import fail_all
from penstock.store.commit.session import RequestKind, StoreRequest

_NEVER = 1 << 62


class Pending:
    def __init__(self) -> None:
        self._requests: deque[StoreRequest] = deque()
        self._taking = threading.Lock()
        self.append = self._requests.append  # from any thread, and without the lock
        self.extend = self._requests.extend

    def __bool__(self) -> bool:
        return bool(self._requests)

    def put_back(self, requests: Sequence[StoreRequest]) -> None:
        """Put requests that were taken back to the front."""
        self._requests.extendleft(reversed(requests))

    def take(self, most: int, *, writes_alone: bool = False) -> list[StoreRequest]:
        """Take requests until their weights reach `most`."""
        batch: list[StoreRequest] = []
        weight = 0
        with self._taking, suppress(IndexError):
            while weight < most:
                request = self._requests.popleft()
                if writes_alone and request.kind is RequestKind.WRITE:
                    if not batch:
                        return [request]
                    self._requests.appendleft(request)
                    break
                batch.append(request)
                weight += request.weight
        return batch

    def take_all(self) -> list[StoreRequest]:
        batch: list[StoreRequest] = []
        with self._taking, suppress(IndexError):
            while True:
                batch.append(self._requests.popleft())
        return batch

    def refuse_all(self, error: StoreUnavailable) -> None:
        fail_all(self.take_all(), error)

    def has_durable(self) -> bool:
        return any(request.is_durable for request in self._requests.copy())

    def expire(self, *, now: int, timeout_ms: int) -> None:
        late: list[StoreRequest] = []
        _stamp(self._requests.copy(), now)
        with self._taking, suppress(IndexError):
            while _is_late(self._requests[0], now, timeout_ms):  # the oldest come first
                late.append(self._requests.popleft())
        if late:
            error = StoreUnavailable(
                f"the store did not start the request within {timeout_ms} ms; it is dropped"
            )
            fail_all(late, error)


class Timeouts:
    """Times out requests to a store; called about once a second."""

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._sources: list[tuple[Pending, Callable[[], Iterable[StoreRequest]]]] = []

    def watch(self, pending: Pending, unanswered: Callable[[], Iterable[StoreRequest]]) -> None:
        """`unanswered` returns the requests that were taken but not yet answered."""
        self._sources.append((pending, unanswered))

    def expire(self, now: int) -> None:
        """`now`: milliseconds of a monotonic clock."""
        for pending, unanswered in self._sources:
            pending.expire(now=now, timeout_ms=self.timeout_ms)
            self._expire_unanswered(list(unanswered()), now)

    def _expire_unanswered(self, unanswered: list[StoreRequest], now: int) -> None:
        _stamp(unanswered, now)
        late = [request for request in unanswered if _is_late(request, now, self.timeout_ms)]
        for request in late:
            request.first_seen_at = _NEVER  # one answer is enough
        error = OutcomeUnknown(
            f"the store did not answer within {self.timeout_ms} ms;"
            " the request was started and may still be carried out"
        )
        fail_all(late, error)


def _stamp(requests: Iterable[StoreRequest], now: int) -> None:
    """Done here and not at creation, which would cost every request a clock reading."""
    for request in requests:
        if request.first_seen_at is None:
            request.first_seen_at = now


def _is_late(request: StoreRequest, now: int, timeout_ms: int) -> bool:
    return request.first_seen_at is not None and now - request.first_seen_at >= timeout_ms
