"""Claims that wait for a message.

A wake-up is only a hint.  A waiting claim registers before it tries, and tries again when it is
woken; one timer per queue fires when a message becomes due.  A lost hint costs time but never a
message: from time to time one query checks all queues with waiting claims.  While nothing happens,
waiting costs nothing, however many claims wait.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, Unpack

from msgspec.structs import replace

from penstock.domain.errors import QueueNotFound, TooManyWaiting
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Queue
from penstock.ports.clock import Clock
from penstock.ports.store import Claimable, Claimed
from penstock.runtime.abandoned_claims import await_claim
from penstock.services.messages import ClaimOptions, MessageService

Kinds = tuple[str, ...] | None


class ClaimWaiter(Protocol):
    """Claims that may wait for a message, in this process or in another."""

    @property
    def waiting(self) -> int:
        """How many claims wait."""
        ...

    def waiting_for(self, queue_nos: Iterable[int]) -> int:
        """How many claims wait for these queues."""
        ...

    async def claim(
        self, queue: Queue, *, wait_ms: int, **options: Unpack[ClaimOptions]
    ) -> Claimed:
        """Claim what is there, or wait up to `wait_ms` for a message.

        Acts that the claim finishes are applied at once, in the transaction of the first try.
        """
        ...

    def close(self) -> None:
        """Let every waiting claim return."""
        ...


class _SameKinds:
    """Claims on one queue for the same kinds; any of them can use a hint."""

    __slots__ = ("asleep", "may_have_more", "waiters")

    def __init__(self) -> None:
        self.waiters: dict[asyncio.Event, None] = {}  # the longest waiting first
        self.asleep: set[asyncio.Event] = set()  # those that have tried and found nothing
        # It is unknown how many messages there are: until a claim finds nothing, each claim that
        # leaves wakes the next one.
        self.may_have_more = False

    @property
    def is_known_empty(self) -> bool:
        """Whether a claim sleeps that any new message would have woken."""
        return not self.may_have_more and any(not waiter.is_set() for waiter in self.asleep)

    def wake(self, count: int) -> bool:
        """Wake up to `count` claims; False if there is none to wake."""
        idle = (waiter for waiter in self.waiters if not waiter.is_set())
        woken = list(itertools.islice(idle, count))
        for waiter in woken:
            waiter.set()
        return bool(woken)


class _WaitingQueue:
    """A queue with waiting claims."""

    __slots__ = ("alike", "due_at", "timer")

    def __init__(self) -> None:
        self.alike: dict[Kinds, _SameKinds] = {}
        self.due_at: int | None = None
        self.timer: asyncio.TimerHandle | None = None

    def try_again(self) -> None:
        """Wake one claim per set of kinds; each that finds something wakes the next."""
        for alike in self.alike.values():
            alike.may_have_more = True
            alike.wake(1)

    def forget_due(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.due_at = self.timer = None


class WaitingClaims:
    def __init__(self, messages: MessageService, clock: Clock, *, most: int, poll_ms: int) -> None:
        self._messages = messages
        self._clock = clock
        self._most = most
        self._poll_s = poll_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._queues: dict[int, _WaitingQueue] = {}
        self._count = 0
        self._is_polling = False
        self._is_closed = False

    @property
    def waiting(self) -> int:
        return self._count

    def waiting_for(self, queue_nos: Iterable[int]) -> int:
        """How many claims wait for these queues."""
        found = (self._queues[queue_no] for queue_no in queue_nos if queue_no in self._queues)
        return sum(len(alike.waiters) for queue in found for alike in queue.alike.values())

    def by_queue(self) -> dict[int, int]:
        """How many claims wait, by queue number."""
        return {queue_no: self.waiting_for([queue_no]) for queue_no in self._queues}

    def on_wakeup(self, woken: Mapping[int, int]) -> None:
        """Wake claims on these queues; from any thread.  Costs nothing without waiting claims."""
        if self._count and not self._queues.keys().isdisjoint(woken):
            self._loop.call_soon_threadsafe(self._wake, dict(woken))

    def invite(
        self, loop: asyncio.AbstractEventLoop, sends: Iterable[Sequence[NewMessage]]
    ) -> bool:
        """Wake claims for messages that are about to be stored; see ports/ticket.py."""
        if not self._count or loop is not self._loop:
            return False
        ready = (n.message for new in sends for n in new if n.message.state is State.READY)
        counts = Counter((message.queue_no, message.kind) for message in ready)
        are_invited = False
        for (queue_no, kind), count in counts.items():
            queue = self._queues.get(queue_no)
            for kinds, alike in queue.alike.items() if queue is not None else ():
                if kinds is None or kind in kinds:
                    are_invited |= alike.wake(count)
        return are_invited

    async def claim(
        self, queue: Queue, *, wait_ms: int, **options: Unpack[ClaimOptions]
    ) -> Claimed:
        """Claim what is there, or wait up to `wait_ms` for a message."""
        finishing = options.get("finishing")
        finished: list[Any] = []
        may_wait = not wait_ms or self._count < self._most
        if not may_wait and not finishing:
            raise self._too_many()
        until = self._clock.now() + wait_ms
        kinds = options.get("kinds")
        alike, woken = self._register(queue.queue_no, kinds)
        try:
            if finishing and wait_ms and may_wait and _need_no_try(queue, alike, options):
                finished = await self._messages.act(finishing)
                finishing, options["finishing"] = None, ()
                await self._sleep(alike, woken, until - self._clock.now())
            while True:
                woken.clear()
                claimed = await self._try_claim(queue, options)
                if finishing:  # done, whatever becomes of the claim
                    finishing, finished = None, claimed.finished
                    options["finishing"] = ()
                now = self._clock.now()
                if not claimed.messages:
                    alike.may_have_more = False
                elif alike.asleep:  # they get the messages if these leases expire
                    self._expect(queue.queue_no, claimed.messages[0][0].due_at, now=now)
                if claimed.messages or now >= until or self._is_closed:
                    return replace(claimed, finished=finished) if finished else claimed
                if not may_wait:
                    raise self._too_many()
                self._expect(queue.queue_no, claimed.next_due_at, now=now)
                await self._sleep(alike, woken, until - now)
        finally:
            self._unregister(queue.queue_no, kinds, woken)

    def _too_many(self) -> TooManyWaiting:
        return TooManyWaiting(f"{self._most} claims are waiting already, which is the limit")

    def close(self) -> None:
        """Let every waiting claim try once more and return."""
        self._is_closed = True
        for queue in self._queues.values():
            queue.forget_due()
            for alike in queue.alike.values():
                alike.wake(len(alike.waiters))

    async def _try_claim(self, queue: Queue, options: ClaimOptions) -> Claimed:
        ticket = self._messages.claim(queue, **options)
        try:
            return await await_claim(ticket, options, self._messages)
        except QueueNotFound as error:
            raise self._messages.error_of(queue.name, error) from None

    async def _sleep(self, alike: _SameKinds, woken: asyncio.Event, pause_ms: int) -> None:
        self._poll_later()
        alike.asleep.add(woken)
        try:
            async with asyncio.timeout(pause_ms / 1000):
                await woken.wait()
        except TimeoutError:
            pass
        finally:
            alike.asleep.discard(woken)

    def _register(self, queue_no: int, kinds: Kinds) -> tuple[_SameKinds, asyncio.Event]:
        waiter = asyncio.Event()
        queue = self._queues.get(queue_no)
        if queue is None:
            queue = self._queues[queue_no] = _WaitingQueue()
        alike = queue.alike.get(kinds)
        if alike is None:
            alike = queue.alike[kinds] = _SameKinds()
        alike.waiters[waiter] = None
        self._count += 1
        return alike, waiter

    def _unregister(self, queue_no: int, kinds: Kinds, waiter: asyncio.Event) -> None:
        queue = self._queues[queue_no]
        alike = queue.alike[kinds]
        del alike.waiters[waiter]
        self._count -= 1
        if alike.waiters:
            if waiter.is_set() or alike.may_have_more:
                alike.wake(1)  # it was woken but did not need the hint: pass it on
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
            if not count:  # a new due date: one claim has to try to learn it
                queue.try_again()
            else:  # the messages may be of any kind
                for alike in queue.alike.values():
                    alike.wake(count)

    # --- due dates ---

    def _expect(self, queue_no: int, due_at: int | None, *, now: int) -> None:
        queue = self._queues[queue_no]
        if due_at is None or (queue.due_at is not None and queue.due_at <= due_at):
            return
        queue.forget_due()
        queue.due_at = due_at
        delay_s = max(0, due_at - now) / 1000
        queue.timer = self._loop.call_later(delay_s, self._fall_due, queue)

    def _fall_due(self, queue: _WaitingQueue) -> None:
        queue.forget_due()
        queue.try_again()

    # --- lost hints ---

    def _poll_later(self) -> None:
        if not self._is_polling:
            self._is_polling = True
            self._loop.call_later(self._poll_s, self._poll)

    def _poll(self) -> None:
        self._is_polling = False
        if self._queues and not self._is_closed:
            self._messages.claimable(list(self._queues)).then(self._take_polled)

    def _take_polled(self, found: list[Claimable] | BaseException) -> None:
        if not isinstance(found, BaseException):  # otherwise the claims get the error themselves
            now = self._clock.now()
            for one in found:
                queue = self._queues.get(one.queue_no)
                if queue is None:
                    continue
                # The clock may have been set, which timers do not notice.
                if one.is_ready or (one.next_due_at is not None and one.next_due_at <= now):
                    self._fall_due(queue)
                else:
                    self._expect(one.queue_no, one.next_due_at, now=now)
        if self._queues:
            self._poll_later()


def _need_no_try(queue: Queue, alike: _SameKinds, options: ClaimOptions) -> bool:
    """Whether a claim can only find nothing after its acts, because claims like it sleep.

    In some queues the end of a lease makes other messages claimable, and a job with a result may
    release others: there the transaction that applies the acts should also claim.  A claim with a
    key may repeat one that has found messages.
    """
    is_plain = not queue.is_ordered and not queue.has_limits
    is_new = options.get("claim_key") is None
    has_results = any(act.result is not None for act in options.get("finishing", ()))
    return is_plain and is_new and alike.is_known_empty and not has_results
