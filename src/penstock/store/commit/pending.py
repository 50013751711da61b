"""Requests that nobody has begun, in their order, and those that have waited for too long.

A request is taken by exactly one side: a connection, which begins it, or `expire`, which answers
that it was not begun.  So a caller that was told "not begun" may safely try again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from penstock.domain.errors import OutcomeUnknown, StoreUnavailable
from penstock.store.commit.answering import answer_all
from penstock.store.commit.session import Kind, Request

_NEVER = 1 << 62


class Pending:
    def __init__(self) -> None:
        self._requests: deque[Request] = deque()
        self._taking = threading.Lock()
        self.append = self._requests.append  # from any thread, and without the lock
        self.extend = self._requests.extend

    def __bool__(self) -> bool:
        return bool(self._requests)

    def put_back(self, requests: Sequence[Request]) -> None:
        """They were taken, and are to be the next again."""
        self._requests.extendleft(reversed(requests))

    def take(self, most: int, *, writes_alone: bool = False) -> list[Request]:
        """As many as weigh no more than that, together."""
        batch: list[Request] = []
        weight = 0
        with self._taking, suppress(IndexError):
            while weight < most:
                request = self._requests.popleft()
                if writes_alone and request.kind is Kind.WRITE:
                    if not batch:
                        return [request]
                    self._requests.appendleft(request)
                    break
                batch.append(request)
                weight += request.weight
        return batch

    def take_all(self) -> list[Request]:
        batch: list[Request] = []
        with self._taking, suppress(IndexError):
            while True:
                batch.append(self._requests.popleft())
        return batch

    def refuse_all(self, error: StoreUnavailable) -> None:
        batch = self.take_all()
        answer_all(batch, [error] * len(batch))

    def has_durable(self) -> bool:
        return any(request.is_durable for request in self._requests.copy())

    def expire(self, *, now: int, timeout_ms: int) -> None:
        late: list[Request] = []
        _stamp(self._requests.copy(), now)
        with self._taking, suppress(IndexError):
            while _is_late(self._requests[0], now, timeout_ms):  # the oldest come first
                late.append(self._requests.popleft())
        if late:
            error = StoreUnavailable(
                f"the store has not begun the request within {timeout_ms} ms, and will not"
            )
            answer_all(late, [error] * len(late))


class Timeouts:
    """Ends the wait of requests for a store; called about once a second."""

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._sources: list[tuple[Pending, Callable[[], Iterable[Request]]]] = []

    def watch(self, pending: Pending, begun: Callable[[], Iterable[Request]]) -> None:
        """`begun`: the requests that were taken and not answered yet."""
        self._sources.append((pending, begun))

    def expire(self, now: int) -> None:
        """`now`: of a clock that only advances; its zero does not matter."""
        for pending, begun in self._sources:
            pending.expire(now=now, timeout_ms=self.timeout_ms)
            self._expire_begun(list(begun()), now)

    def _expire_begun(self, begun: list[Request], now: int) -> None:
        _stamp(begun, now)
        late = [request for request in begun if _is_late(request, now, self.timeout_ms)]
        for request in late:
            request.asked_at = _NEVER  # one answer is enough
        error = OutcomeUnknown(
            f"the store has not answered within {self.timeout_ms} ms;"
            " the request was begun and may still be carried out"
        )
        answer_all(late, [error] * len(late))


def _stamp(requests: Iterable[Request], now: int) -> None:
    """Not when they are made: to read a clock would cost every request something."""
    for request in requests:
        if request.asked_at is None:
            request.asked_at = now


def _is_late(request: Request, now: int, timeout_ms: int) -> bool:
    return request.asked_at is not None and now - request.asked_at >= timeout_ms
