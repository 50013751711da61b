"""Group commit: a writer takes all pending requests, runs them in one transaction and answers them.

While one commit syncs, requests gather for the next: no timers, and no added latency when idle.  A
caller (a thread or an event loop) that finds the writer idle runs the batch itself, which saves
context switches; only the wait for the disk is left to the writer's thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from penstock.domain.errors import ShuttingDown
from penstock.ports.ticket import InviteClaims
from penstock.store.commit.lane import Lane, OnCommit
from penstock.store.commit.outage import StoreOutage
from penstock.store.commit.requests import Pending, RequestKind, StoreRequest
from penstock.store.commit.session import SqlSession
from penstock.supervision.health import NodeHealth

HELP_S = 0.1

_log = logging.getLogger("penstock.store")


class GroupCommit:
    def __init__(
        self,
        open_session: Callable[[int], SqlSession],
        *,
        lanes: int,
        on_commit: OnCommit,
        outage: StoreOutage,
        health: NodeHealth,
        stuck_ms: int,
    ) -> None:
        self._waiting = self.pending = Pending()
        self._lanes = [
            Lane(
                self._waiting,
                lambda i=i: open_session(i),  # type: ignore[misc]
                on_commit,
                outage,
                health=health,
                stuck_ms=stuck_ms,
            )
            for i in range(lanes)
        ]
        self._gathered: dict[asyncio.AbstractEventLoop, list[StoreRequest]] = {}
        self.invite_claims: InviteClaims = lambda loop, sends: False
        self._next = 0
        self._is_closed = False  # new requests are refused
        self._is_shut = False  # … and the lanes have stopped

    def unanswered(self) -> Iterable[StoreRequest]:
        """Requests that were taken but not yet answered."""
        return [request for lane in self._lanes for request in lane.unanswered]

    def submit(self, request: StoreRequest) -> None:
        if self._is_closed:
            raise ShuttingDown("the store is closed")
        loop = request.ticket.loop
        if loop is None:
            self._offer_help(request)
            self._waiting.append(request)
            if not any(lane.help() for lane in self._lanes):
                self._call()
            return
        # Requests of one iteration of the loop go to the writer together: fewer, larger commits.
        gathered = self._gathered.get(loop)
        if gathered is None:
            gathered = self._gathered[loop] = []
            loop.call_soon(self._end_turn, loop)
        gathered.append(request)

    def submit_all(self, requests: Sequence[StoreRequest]) -> None:
        """Submit together; one by one, a thread would run each request in its own transaction."""
        if self._is_closed:
            raise ShuttingDown("the store is closed")
        if not requests:
            return
        if requests[0].ticket.loop is not None:  # submit() gathers the requests of a loop
            for request in requests:
                self.submit(request)
            return
        for request in requests:
            self._offer_help(request)
        self._waiting.extend(requests)
        if not any(lane.help() for lane in self._lanes):
            self._call()

    def _offer_help(self, request: StoreRequest) -> None:
        """Let the thread that waits for the answer run the batch itself."""
        [lane, *others] = self._lanes
        if not others and (lane.callers_may_sync or not request.is_durable):
            request.ticket.help = self.help  # with several lanes, any of them may answer

    def _end_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        sends = (r.payload for r in self._gathered[loop] if r.kind is RequestKind.SEND)
        try:
            are_invited = self.invite_claims(loop, sends)
        except Exception:  # the requests must not be forgotten
            _log.exception("waiting claims could not be invited to a commit")
            are_invited = False
        if are_invited:
            loop.call_soon(self._hand_over, loop)  # after the claims of the next iteration
        else:
            self._hand_over(loop)

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        gathered = self._gathered.pop(loop)
        self._waiting.extend(gathered)
        if len(self._lanes) == 1 and all(request.is_short for request in gathered):
            self._prepare_pending(loop)
        else:
            self._call()

    def _prepare_pending(self, loop: asyncio.AbstractEventLoop) -> None:
        """Prepare pending requests; a no-op during a commit, whose thread calls this afterwards."""
        lane = self._lanes[0]
        if not lane.prepare(loop, lambda: self._prepare_pending(loop)) and not lane.is_committing:
            self._call()

    def _call(self) -> None:
        # Wake the next idle lane.  If all are busy, each checks for more work when it is done.
        for _ in self._lanes:
            self._next = (self._next + 1) % len(self._lanes)
            if self._lanes[self._next].is_idle:
                break
        self._lanes[self._next].call()
        if self._is_shut:
            self._refuse_the_rest()

    def close_connections(self, then: Callable[[], None]) -> None:
        [lane] = self._lanes
        lane.close_connections(then)

    def close(self) -> None:
        """Finish the requests that were taken, and refuse new ones."""
        self._is_closed = True
        for lane in self._lanes:
            lane.close()
        self._is_shut = True
        self._refuse_the_rest()

    def _refuse_the_rest(self) -> None:
        """Refuse requests that were submitted while the lanes closed."""
        self._waiting.refuse_all(ShuttingDown("the store is closed"))

    def help(self, timeout: float) -> None:
        """Called by a thread that waits for its answer: doing the work itself saves a wake-up."""
        # Not for long: the lane may hang, and the caller's wait is bounded.
        self._lanes[self._next].help_next(HELP_S if timeout < 0 else min(timeout, HELP_S))
