"""Claims that wait for a message: the one place where the broker is asynchronous by nature.

A wake-up is only a hint.  Whoever waits is registered before it looks, looks again when woken, when
something falls due and once in a while, so a lost hint costs time and never a message.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Unpack

from penstock.domain.errors import TooManyWaiting
from penstock.domain.queue import Queue
from penstock.ports.clock import Clock
from penstock.ports.store import Claimed
from penstock.services.messages import ClaimOptions, Messages

Kinds = tuple[str, ...] | None


class WaitingRoom:
    def __init__(self, messages: Messages, clock: Clock, *, most: int, poll_ms: int) -> None:
        self._messages = messages
        self._clock = clock
        self._most = most
        self._poll_ms = poll_ms
        self._loop = asyncio.get_running_loop()
        # By queue, and there by what they want: a hint that one cannot use is for another.
        self._waiters: dict[int, dict[Kinds, deque[asyncio.Event]]] = {}
        self._count = 0
        self._is_closed = False

    @property
    def waiting(self) -> int:
        return self._count

    def waiting_for(self, queue_nos: Iterable[int]) -> int:
        """How many wait for these queues."""
        found = (self._waiters.get(queue_no, {}) for queue_no in queue_nos)
        return sum(len(waiters) for alike in found for waiters in alike.values())

    def heard(self, woken: Mapping[int, int]) -> None:
        """From any thread: some queues have something.  Costs nothing while nobody waits."""
        if self._count and not self._waiters.keys().isdisjoint(woken):
            self._loop.call_soon_threadsafe(self._wake, dict(woken))

    async def claim(
        self, queue: Queue, *, wait_ms: int, **options: Unpack[ClaimOptions]
    ) -> Claimed:
        """What is there now, or what comes within `wait_ms`."""
        if wait_ms and self._count >= self._most:
            raise TooManyWaiting(f"{self._most} claims wait already")
        until = self._clock.now() + wait_ms
        kinds = options.get("kinds")
        woken = self._enter(queue.queue_no, kinds)
        try:
            while True:
                woken.clear()
                claimed = await self._look(queue, options)
                now = self._clock.now()
                if claimed.messages or now >= until or self._is_closed:
                    return claimed
                await self._sleep(woken, self._pause_ms(now, until, claimed.next_due_at))
        finally:
            self._leave(queue.queue_no, kinds, woken)

    def close(self) -> None:
        """Let everybody look once more and go."""
        self._is_closed = True
        for alike in self._waiters.values():
            for waiters in alike.values():
                for waiter in waiters:
                    waiter.set()

    async def _look(self, queue: Queue, options: ClaimOptions) -> Claimed:
        ticket = self._messages.claim(queue, **options)
        try:
            return await ticket
        except asyncio.CancelledError:
            # The client has gone while its claim was under way: nobody would complete those, unless
            # it can ask for them again.
            if options.get("claim_key") is None:
                ticket.then(self._give_back)
            raise

    def _give_back(self, claimed: Claimed | BaseException) -> None:
        if isinstance(claimed, Claimed) and claimed.messages:
            self._messages.release([message for message, _ in claimed.messages])

    def _pause_ms(self, now: int, until: int, next_due_at: int | None) -> int:
        pause = min(until - now, self._poll_ms)
        return pause if next_due_at is None else max(0, min(pause, next_due_at - now))

    async def _sleep(self, woken: asyncio.Event, pause_ms: int) -> None:
        try:
            async with asyncio.timeout(pause_ms / 1000):
                await woken.wait()
        except TimeoutError:
            pass

    def _enter(self, queue_no: int, kinds: Kinds) -> asyncio.Event:
        waiter = asyncio.Event()
        self._waiters.setdefault(queue_no, {}).setdefault(kinds, deque()).append(waiter)
        self._count += 1
        return waiter

    def _leave(self, queue_no: int, kinds: Kinds, waiter: asyncio.Event) -> None:
        alike = self._waiters[queue_no]
        waiters = alike[kinds]
        waiters.remove(waiter)
        self._count -= 1
        if waiters:
            if waiter.is_set():
                _wake_some(waiters, 1)  # it took a hint that it did not need: pass it on
            return
        del alike[kinds]
        if not alike:
            del self._waiters[queue_no]

    def _wake(self, woken: Mapping[int, int]) -> None:
        for queue_no, count in woken.items():
            # What has come may be of any kind: so many look of all that want the same.
            for waiters in self._waiters.get(queue_no, {}).values():
                _wake_some(waiters, count)


def _wake_some(waiters: deque[asyncio.Event], count: int) -> None:
    # A count of nothing tells of a new due date: everybody must judge anew when to look.
    for waiter in list(waiters)[: count or len(waiters)]:
        waiter.set()
        waiters.rotate(-1)
