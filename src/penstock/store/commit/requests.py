"""Requests to the store: what they are, where they wait, and the tickets for their answers.

A request is taken exactly once: by a connection, which starts it, or by `Pending.expire`, which
answers "not started".  So a caller that gets this answer may safely retry.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from enum import IntEnum
from typing import Any, Generic, TypeVar

from penstock.domain.errors import PenstockError, StoreUnavailable
from penstock.domain.message.lease import FORGETTABLE, LeaseAct
from penstock.ports.store import Claim

T = TypeVar("T")

_OPEN: Any = object()
_loops: dict[int, asyncio.AbstractEventLoop] = {}  # the last one seen in each thread
_log = logging.getLogger("penstock.store")


class StoreTicket(Generic[T]):
    """Bound to the event loop it was created on, or to the thread without one.

    Not a Future: creating one costs more than the rest of a send.  On a loop the answer is a plain
    call (`then`); `await` creates a future.
    """

    __slots__ = ("_answer", "_callback", "_lock", "help", "loop", "thread")

    def __init__(self) -> None:
        self._answer: Any = _OPEN
        self._callback: Callable[[T | BaseException], None] | None = None
        self.help: Callable[[float], None] | None = None
        self.loop = running_loop()
        self.thread = threading.get_ident()
        if self.loop is None:
            self._lock = threading.Lock()
            self._lock.acquire()

    def result(self, timeout: float | None = None) -> T:
        if self.loop is not None:
            raise RuntimeError("this ticket belongs to an event loop: await it")
        patience = -1 if timeout is None else timeout
        if self.help is not None and self._answer is _OPEN:
            self.help(patience)
        if not self._lock.acquire(timeout=patience):
            raise TimeoutError("the store did not answer in time")
        self._lock.release()
        return self._value()

    def then(self, callback: Callable[[T | BaseException], None]) -> None:
        """Call back on the loop with the answer or the error; at once if there is one already."""
        if self._answer is not _OPEN:
            callback(self._answer)
        else:
            self._callback = callback

    def __await__(self) -> Generator[Any, None, T]:
        if self.loop is None:
            raise RuntimeError("this ticket belongs to a thread: call result()")
        if self._answer is _OPEN:
            future: asyncio.Future[None] = self.loop.create_future()
            self._callback = lambda _: None if future.done() else future.set_result(None)
            yield from future
        return self._value()

    def answer(self, answer: T | BaseException) -> None:
        """Called on the ticket's own loop, or from any thread for a thread's ticket.

        The first answer counts; one that comes after a timeout is dropped.
        """
        if self._answer is not _OPEN:
            return
        self._answer = answer
        if self.loop is None:
            with suppress(RuntimeError):  # two threads answered at the same moment
                self._lock.release()
        elif self._callback is not None:
            # Drop it first: it often refers to the ticket, and such cycles are costly to collect.
            callback, self._callback = self._callback, None
            callback(answer)

    def _value(self) -> T:
        if isinstance(self._answer, BaseException):
            raise self._answer
        value: T = self._answer
        return value


class RequestKind(IntEnum):
    """In order of execution: claims come last, so that they find what was just sent."""

    WRITE = 0
    SEND = 1
    ACT = 2
    CLAIM = 3


class StoreRequest:
    """Work for a transaction, and the ticket for its answer."""

    __slots__ = ("first_seen_at", "kind", "payload", "ticket")

    def __init__(self, kind: RequestKind, payload: Any) -> None:
        self.kind = kind
        self.payload = payload
        self.first_seen_at: int | None = None  # when `Pending.expire` first saw it
        self.ticket: StoreTicket[Any] = StoreTicket()

    @property
    def weight(self) -> int:
        """Roughly the number of messages."""
        match self.kind:
            case RequestKind.SEND | RequestKind.ACT:
                return len(self.payload)
            case RequestKind.CLAIM:
                claim: Claim = self.payload
                return claim.limit + len(claim.finishing)
            case RequestKind.WRITE:
                return 100

    @property
    def is_short(self) -> bool:
        """Whether it takes well under a millisecond, apart from the disk."""
        return self.kind is not RequestKind.WRITE and self.weight <= 100

    @property
    def is_durable(self) -> bool:
        """False for claims and extensions: losing one in a power cut costs only a redelivery."""
        if self.kind is RequestKind.CLAIM or self.kind is RequestKind.ACT:
            return any(act.verb not in FORGETTABLE for act in self.acts)
        return True

    @property
    def acts(self) -> Sequence[LeaseAct]:
        """Its acts on leases, alone or before a claim."""
        match self.kind:
            case RequestKind.ACT:
                acts: Sequence[LeaseAct] = self.payload
                return acts
            case RequestKind.CLAIM:
                claim: Claim = self.payload
                return claim.finishing
            case _:
                return ()


class Pending:
    """Requests in order of arrival."""

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
        stamp(self._requests.copy(), now)
        with self._taking, suppress(IndexError):
            while is_late(self._requests[0], now, timeout_ms):  # the oldest come first
                late.append(self._requests.popleft())
        if late:
            error = StoreUnavailable(
                f"the store did not start the request within {timeout_ms} ms; it is dropped"
            )
            fail_all(late, error)


def answer_all(batch: Sequence[StoreRequest], answers: Sequence[Any]) -> None:
    """Answer each request, with one callback per event loop, however many tickets it has."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[StoreRequest, Any]]] = {}
    for request, answer in zip(batch, answers, strict=True):
        loop = request.ticket.loop
        if loop is None:
            request.ticket.answer(answer)
        else:
            loops.setdefault(loop, []).append((request, answer))
    here = running_loop() if loops else None
    for loop, pairs in loops.items():
        try:
            if here is loop:
                _answer_pairs(pairs)
            else:
                loop.call_soon_threadsafe(_answer_pairs, pairs)
        except RuntimeError:  # the loop is closed: its tickets are no longer awaited
            continue


def fail_all(batch: Sequence[StoreRequest], error: PenstockError) -> None:
    """Answer every request of the batch with the same error."""
    answer_all(batch, [error] * len(batch))


def internal_error(error: BaseException) -> PenstockError:
    """An unexpected exception, wrapped as the answer to the request that raised it."""
    wrapped = PenstockError(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


def running_loop() -> asyncio.AbstractEventLoop | None:
    """asyncio.get_running_loop(), cached: before Python 3.12 that costs a tenth of a send."""
    thread = threading.get_ident()
    loop = _loops.get(thread)
    if loop is None or not loop.is_running():
        try:
            loop = _loops[thread] = asyncio.get_running_loop()
        except RuntimeError:
            _loops.pop(thread, None)
            return None
    return loop


def stamp(requests: Iterable[StoreRequest], now: int) -> None:
    """Done here and not at creation, which would cost every request a clock reading."""
    for request in requests:
        if request.first_seen_at is None:
            request.first_seen_at = now


def is_late(request: StoreRequest, now: int, timeout_ms: int) -> bool:
    return request.first_seen_at is not None and now - request.first_seen_at >= timeout_ms


def _answer_pairs(pairs: list[tuple[StoreRequest, Any]]) -> None:
    for request, answer in pairs:
        try:
            request.ticket.answer(answer)
        except Exception:  # one failing callback must not leave the others waiting
            _log.exception("a callback of a store request failed")
