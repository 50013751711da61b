"""Claims that wait for a message: the one place where the broker is asynchronous by nature.

A wake-up is only a hint.  A waiting claim is registered before it looks, and looks again when it is
woken; one timer per queue wakes when something falls due.  A lost hint costs time and never a
message: once in a while one query asks for all the queues together, so claims that wait cost
nothing while nothing happens, however many they are.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Mapping
from typing import Unpack

from penstock.domain.errors import QueueNotFound, TooManyWaiting
from penstock.domain.queue.queue import Queue
from penstock.ports.clock import Clock
from penstock.ports.store import Claimable, Claimed
from penstock.services.messages import ClaimOptions, Messages

Kinds = tuple[str, ...] | None


class _Alike:
    """Claims at one queue that want the same kinds; any of them can use a hint."""

    __slots__ = ("may_have_more", "waiters")

    def __init__(self) -> None:
        self.waiters: dict[asyncio.Event, None] = {}  # who has waited longest comes first
        # Nobody knows how many messages a look may find, or when the next one falls due: until a
        # look finds nothing, each claim that leaves has the next one look.
        self.may_have_more = False

    def wake(self, count: int) -> None:
        idle = (waiter for waiter in self.waiters if not waiter.is_set())
        for waiter in itertools.islice(idle, count):
            waiter.set()


class _WaitedFor:
    """A queue at which claims wait."""

    __slots__ = ("alike", "due_at", "timer")

    def __init__(self) -> None:
        self.alike: dict[Kinds, _Alike] = {}
        self.due_at: int | None = None
        self.timer: asyncio.TimerHandle | None = None

    def look_again(self) -> None:
        """One of each kinds looks, and the next one for as long as something is found."""
        for alike in self.alike.values():
            alike.may_have_more = True
            alike.wake(1)

    def forget_due(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.due_at = self.timer = None


class WaitingRoom:
    def __init__(self, messages: Messages, clock: Clock, *, most: int, poll_ms: int) -> None:
        self._messages = messages
        self._clock = clock
        self._most = most
        self._poll_s = poll_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._queues: dict[int, _WaitedFor] = {}
        self._count = 0
        self._is_polling = False
        self._is_closed = False

    @property
    def waiting(self) -> int:
        return self._count

    def waiting_for(self, queue_nos: Iterable[int]) -> int:
        """How many wait for these queues."""
        found = (self._queues[queue_no] for queue_no in queue_nos if queue_no in self._queues)
        return sum(len(alike.waiters) for queue in found for alike in queue.alike.values())

    def heard(self, woken: Mapping[int, int]) -> None:
        """From any thread: some queues have something.  Costs nothing while nobody waits."""
        if self._count and not self._queues.keys().isdisjoint(woken):
            self._loop.call_soon_threadsafe(self._wake, dict(woken))

    async def claim(
        self, queue: Queue, *, wait_ms: int, **options: Unpack[ClaimOptions]
    ) -> Claimed:
        """What is there now, or what comes within `wait_ms`."""
        if wait_ms and self._count >= self._most:
            raise TooManyWaiting(f"{self._most} claims wait already")
        until = self._clock.now() + wait_ms
        kinds = options.get("kinds")
        alike, woken = self._enter(queue.queue_no, kinds)
        try:
            while True:
                woken.clear()
                claimed = await self._look(queue, options)
                now = self._clock.now()
                if not claimed.messages:
                    alike.may_have_more = False
                if claimed.messages or now >= until or self._is_closed:
                    return claimed
                self._expect(queue.queue_no, claimed.next_due_at, now=now)
                self._poll_later()
                await self._sleep(woken, until - now)
        finally:
            self._leave(queue.queue_no, kinds, woken)

    def close(self) -> None:
        """Let everybody look once more and go."""
        self._is_closed = True
        for queue in self._queues.values():
            queue.forget_due()
            for alike in queue.alike.values():
                alike.wake(len(alike.waiters))

    async def _look(self, queue: Queue, options: ClaimOptions) -> Claimed:
        ticket = self._messages.claim(queue, **options)
        try:
            return await ticket
        except QueueNotFound as error:
            raise self._messages.error_of(queue.name, error) from None
        except asyncio.CancelledError:
            # The client has gone while its claim was under way: nobody would complete those, unless
            # it can ask for them again.
            if options.get("claim_key") is None:
                ticket.then(self._give_back)
            raise

    def _give_back(self, claimed: Claimed | BaseException) -> None:
        if isinstance(claimed, Claimed) and claimed.messages:
            self._messages.release([message for message, _ in claimed.messages])

    async def _sleep(self, woken: asyncio.Event, pause_ms: int) -> None:
        try:
            async with asyncio.timeout(pause_ms / 1000):
                await woken.wait()
        except TimeoutError:
            pass

    def _enter(self, queue_no: int, kinds: Kinds) -> tuple[_Alike, asyncio.Event]:
        waiter = asyncio.Event()
        queue = self._queues.get(queue_no)
        if queue is None:
            queue = self._queues[queue_no] = _WaitedFor()
        alike = queue.alike.get(kinds)
        if alike is None:
            alike = queue.alike[kinds] = _Alike()
        alike.waiters[waiter] = None
        self._count += 1
        return alike, waiter

    def _leave(self, queue_no: int, kinds: Kinds, waiter: asyncio.Event) -> None:
        queue = self._queues[queue_no]
        alike = queue.alike[kinds]
        del alike.waiters[waiter]
        self._count -= 1
        if alike.waiters:
            if waiter.is_set() or alike.may_have_more:
                alike.wake(1)  # it took a hint that it did not need: pass it on
            return
        del queue.alike[kinds]
        if not queue.alike:
            queue.forget_due()
            del self._queues[queue_no]

    def _wake(self, woken: Mapping[int, int]) -> None:
        for queue_no, count in woken.items():
            queue = self._queues.get(queue_no)
            if queue is None:
                continue
            if not count:  # a new due date: it takes one look to know it
                queue.look_again()
            else:  # what has come may be of any kind
                for alike in queue.alike.values():
                    alike.wake(count)

    # --- what falls due ---

    def _expect(self, queue_no: int, due_at: int | None, *, now: int) -> None:
        queue = self._queues[queue_no]
        if due_at is None or (queue.due_at is not None and queue.due_at <= due_at):
            return
        queue.forget_due()
        queue.due_at = due_at
        delay_s = max(0, due_at - now) / 1000
        queue.timer = self._loop.call_later(delay_s, self._fall_due, queue)

    def _fall_due(self, queue: _WaitedFor) -> None:
        queue.forget_due()
        queue.look_again()

    # --- hints that got lost ---

    def _poll_later(self) -> None:
        if not self._is_polling:
            self._is_polling = True
            self._loop.call_later(self._poll_s, self._poll)

    def _poll(self) -> None:
        self._is_polling = False
        if self._queues and not self._is_closed:
            self._messages.claimable(list(self._queues)).then(self._polled)

    def _polled(self, found: list[Claimable] | BaseException) -> None:
        if not isinstance(found, BaseException):  # else the claims find out when they look
            now = self._clock.now()
            for one in found:
                queue = self._queues.get(one.queue_no)
                if queue is None:
                    continue
                # Timers do not notice that the clock was set: what is due by it is due.
                if one.is_ready or (one.next_due_at is not None and one.next_due_at <= now):
                    self._fall_due(queue)
                else:
                    self._expect(one.queue_no, one.next_due_at, now=now)
        if self._queues:
            self._poll_later()
