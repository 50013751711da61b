"""Group commit: a writer takes all that waits, runs it in one transaction, and answers everybody.

While one commit syncs, the next batch gathers: no timers, and no added latency when idle.  Whoever
finds the writer idle does what need not wait for the disk itself, which saves switches of threads:
a caller in a thread of its own, or an event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from penstock.domain.errors import ShuttingDown
from penstock.store.commit.lane import Lane, Woken
from penstock.store.commit.outage import Outage
from penstock.store.commit.pending import Pending
from penstock.store.commit.session import Request, SqlSession
from penstock.supervision.health import Health

HELP_S = 0.1


class GroupCommit:
    def __init__(
        self,
        open_session: Callable[[int], SqlSession],
        *,
        lanes: int,
        on_woken: Woken,
        outage: Outage,
        health: Health,
        stuck_ms: int,
    ) -> None:
        self._waiting = self.pending = Pending()
        self._lanes = [
            Lane(
                self._waiting,
                lambda i=i: open_session(i),  # type: ignore[misc]
                on_woken,
                outage,
                health=health,
                stuck_ms=stuck_ms,
            )
            for i in range(lanes)
        ]
        self._gathered: dict[asyncio.AbstractEventLoop, list[Request]] = {}
        self._next = 0
        self._is_closed = False  # nothing new is taken
        self._is_shut = False  # … and nobody works any more

    def begun(self) -> Iterable[Request]:
        """What was taken and is not answered yet."""
        return [request for lane in self._lanes for request in lane.begun]

    def submit(self, request: Request) -> None:
        if self._is_closed:
            raise ShuttingDown("the store is closed")
        loop = request.ticket.loop
        if loop is None:
            self._offer_help(request)
            self._waiting.append(request)
            if not any(lane.help() for lane in self._lanes):
                self._call()
            return
        # What one turn of the loop brings in goes to the writer together: fewer, larger commits.
        gathered = self._gathered.get(loop)
        if gathered is None:
            gathered = self._gathered[loop] = []
            loop.call_soon(self._hand_over, loop)
        gathered.append(request)

    def submit_all(self, requests: Sequence[Request]) -> None:
        """One by one a thread would do each of them at once, in a transaction of its own."""
        if self._is_closed:
            raise ShuttingDown("the store is closed")
        if not requests:
            return
        if requests[0].ticket.loop is not None:  # a loop gathers by itself
            for request in requests:
                self.submit(request)
            return
        for request in requests:
            self._offer_help(request)
        self._waiting.extend(requests)
        if not any(lane.help() for lane in self._lanes):
            self._call()

    def _offer_help(self, request: Request) -> None:
        """Whoever waits for the answer may work for it meanwhile."""
        [lane, *others] = self._lanes
        if not others and (lane.helps_with_syncs or not request.is_durable):
            request.ticket.help = self.help  # with others, the answer may come from any of them

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        gathered = self._gathered.pop(loop)
        self._waiting.extend(gathered)
        if len(self._lanes) == 1 and all(request.is_short for request in gathered):
            self._go_on(loop)
        else:
            self._call()

    def _go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Prepare what waits, unless a commit is under way: then the thread says when to go on."""
        lane = self._lanes[0]
        if not lane.prepare(loop, lambda: self._go_on(loop)) and not lane.is_committing:
            self._call()

    def _call(self) -> None:
        # The next one that is free.  If none is, they all look for more when they are done.
        for _ in self._lanes:
            self._next = (self._next + 1) % len(self._lanes)
            if self._lanes[self._next].is_idle:
                break
        self._lanes[self._next].call()
        if self._is_shut:
            self._refuse_the_rest()

    def let_go(self, then: Callable[[], None]) -> None:
        [lane] = self._lanes
        lane.let_go(then)

    def close(self) -> None:
        """Finish what was taken, refuse what comes."""
        self._is_closed = True
        for lane in self._lanes:
            lane.close()
        self._is_shut = True
        self._refuse_the_rest()

    def _refuse_the_rest(self) -> None:
        """What slipped in while the lanes closed: nobody shall wait for an answer in vain."""
        self._waiting.refuse_all(ShuttingDown("the store is closed"))

    def help(self, timeout: float) -> None:
        """Called by a thread that waits for its answer: better to work than to be woken later."""
        # Not for long: whoever is at it may hang, and the caller's wait has an end.
        self._lanes[self._next].help_next(HELP_S if timeout < 0 else min(timeout, HELP_S))
