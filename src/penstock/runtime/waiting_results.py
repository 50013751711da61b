"""Callers that wait for messages to end.

A hint says which messages have ended; one read returns what became of all that are waited for.
Hints may be lost, and completions without a result in other processes give none.  So one query
looks up all messages that are waited for, at intervals that grow with the number of callers.  While
nothing happens, waiting costs nothing else, however many callers wait.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from typing import Any

from penstock.domain.errors import PenstockError, TooManyWaiting
from penstock.domain.message.result import MessageResult
from penstock.ports.clock import Clock
from penstock.ports.store import Store
from penstock.ports.ticket import Endings
from penstock.ports.waiting import Waiter
from penstock.supervision.health import NodeHealth
from penstock.supervision.threads import SupervisedThread

_AT_ONCE = 100  # results of one read: each may be large
_WAITERS_PER_POLL = 1_000  # each thousand adds one interval: the cost of polling is bounded
_CLOSING_PATIENCE_S = 2.0

_Found = Future[MessageResult | None]


class WaitingResults:
    """Safe to share between threads; its own thread starts with the first waiter."""

    def __init__(
        self,
        store: Store,
        endings: Endings,
        clock: Clock,
        *,
        most: int,
        poll_ms: int,
        health: NodeHealth,
    ) -> None:
        self._store = store
        self._endings = endings
        self._clock = clock
        self._most = most
        self._poll_ms = poll_ms
        self._health = health
        self._changed = threading.Condition()
        self._waiters: dict[str, set[_Found]] = {}  # by message
        self._count = 0
        self._poll_at = 0
        self._ended: set[str] = set()  # messages to look up
        self._thread: SupervisedThread | None = None
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """How many callers wait."""
        return self._count

    @contextmanager
    def register(self, message_id: str) -> Iterator[Waiter]:
        found: _Found = Future()
        with self._changed:
            if self._count >= self._most:
                raise TooManyWaiting(
                    f"{self._most} callers wait for messages already, which is the limit"
                )
            self._waiters.setdefault(message_id, set()).add(found)
            self._count += 1
            if self._count == 1:
                self._begin()
            if self._is_closed:
                found.set_result(None)
        try:
            yield _Registered(found)
        finally:
            self._unregister(message_id, found)

    def on_endings(self, ids: Sequence[str]) -> None:
        """Messages have ended; from any thread.  Costs next to nothing without waiters."""
        if not self._waiters:
            return
        with self._changed:
            ended = self._waiters.keys() & ids
            if ended:
                self._ended |= ended
                self._changed.notify()

    def close(self) -> None:
        """Let every caller return."""
        with self._changed:
            self._is_closed = True
            waiters = [one for some in self._waiters.values() for one in some]
            self._changed.notify()
        for one in waiters:
            _resolve(one, None)
        if self._thread is not None:
            self._thread.join(_CLOSING_PATIENCE_S)

    def check(self, ids: Sequence[str]) -> None:
        """Look up these messages, and answer those who wait for one that has ended."""
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            found = self._look_up(some)
            for message_id in some:
                one = found.get(message_id)  # None: it is not stored any more
                if one is None or one.is_ended:
                    self._answer(message_id, one)

    def _look_up(self, ids: Sequence[str]) -> dict[str, MessageResult]:
        return self._store.read(lambda session: session.results.of(ids)).result()

    def poll(self) -> None:
        """Look up all messages that are waited for."""
        with self._changed:
            ids = list(self._waiters)
        running = self._store.read(lambda session: session.results.running(ids)).result()
        self.check([message_id for message_id in ids if message_id not in running])

    def _answer(self, message_id: str, ended: MessageResult | None) -> None:
        with self._changed:
            waiters = list(self._waiters.get(message_id, ()))
        for one in waiters:
            _resolve(one, ended)

    def _unregister(self, message_id: str, found: _Found) -> None:
        with self._changed:
            waiters = self._waiters[message_id]
            waiters.discard(found)
            if not waiters:
                del self._waiters[message_id]
            self._count -= 1
            if not self._count:
                self._endings.watch_endings(False)

    def _begin(self) -> None:
        """Called for the first of the callers that wait now."""
        self._endings.watch_endings(True)
        self._poll_at = self._clock.now() + self._interval_ms
        if self._thread is None and not self._is_closed:
            self._endings.listen_for_endings(self.on_endings)
            self._thread = SupervisedThread("penstock-results", self._run, health=self._health)
            self._thread.start()
        self._changed.notify()

    def _run(self) -> None:
        while not self._is_closed:
            with self._changed:
                if not self._ended and not self._is_closed:
                    self._changed.wait(self._pause_s())
                ended, self._ended = list(self._ended), set()
                is_poll_due = self._is_poll_due()
            with suppress(PenstockError):  # the store is unavailable: the next poll repeats it
                if ended:
                    self.check(ended)
                if is_poll_due:
                    self.poll()

    @property
    def _interval_ms(self) -> int:
        return self._poll_ms + self._poll_ms * self._count // _WAITERS_PER_POLL

    def _pause_s(self) -> float | None:
        """Until the next poll; None: until there is a caller who waits."""
        if not self._count:
            return None
        return min(max(self._poll_at - self._clock.now(), 0), self._interval_ms) / 1000

    def _is_poll_due(self) -> bool:
        now = self._clock.now()
        if not self._count or now < self._poll_at <= now + self._interval_ms:
            return False
        self._poll_at = now + self._interval_ms
        return True


class _Registered:
    def __init__(self, found: _Found) -> None:
        self._found = found

    def wait(self, wait_ms: int) -> _Pending:
        return _Pending(self._found, wait_ms / 1000)


class _Pending:
    """The step of a sequence of work: blocks a thread, or is awaited on an event loop."""

    def __init__(self, found: _Found, wait_s: float) -> None:
        self._found = found
        self._wait_s = wait_s

    def result(self, timeout: float | None = None) -> MessageResult | None:
        try:
            return self._found.result(self._wait_s)
        except TimeoutError:
            return None

    def __await__(self) -> Generator[Any, None, MessageResult | None]:
        return self._wait().__await__()

    async def _wait(self) -> MessageResult | None:
        try:
            async with asyncio.timeout(self._wait_s):
                return await asyncio.wrap_future(self._found)
        except TimeoutError:
            return None


def _resolve(found: _Found, answer: MessageResult | None) -> None:
    with suppress(InvalidStateError):  # answered already, or its caller has left
        found.set_result(answer)
