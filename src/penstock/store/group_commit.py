"""Group commit: a writer takes all that waits, runs it in one transaction, and answers everybody.

While one commit syncs, the next batch gathers: no timers, and no added latency when idle.  Whoever
finds the writer idle does the work itself, which saves two switches of threads: a caller in a thread
of its own, and an event loop as long as the disk is quick.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from penstock.domain.errors import PenstockError, ShuttingDown, StoreUnavailable
from penstock.store.database import Collision
from penstock.store.session import Request, SqlSession
from penstock.store.ticket import running_loop

MOST_COLLISIONS = 3
SLOW_SECONDS = 0.1  # a loop must not stand still for longer than this (a checkpoint takes less) …
TURNS_ELSEWHERE = 200  # … so the writer's own thread takes over for a while
MOST_PER_BATCH = 5_000  # messages: a commit must not keep the next ones waiting for long

_log = logging.getLogger("penstock.store")

Woken = Callable[[Mapping[int, int]], None]


class Lane:
    """One session and the thread that may drive it.  Several lanes may share one waiting line."""

    def __init__(
        self,
        waiting: deque[Request],
        open_session: Callable[[], SqlSession],
        on_woken: Woken,
    ) -> None:
        self._waiting = waiting
        self._open_session = open_session
        self._session: SqlSession | None = open_session()
        self._on_woken = on_woken
        self._busy = threading.Lock()
        self._heir = threading.Lock()
        self._work = threading.Semaphore(0)
        self._is_closing = False
        self._thread = threading.Thread(target=self._drive, name="penstock-writer", daemon=True)
        self._thread.start()

    def call(self) -> None:
        """Something waits: wake the thread."""
        self._work.release()

    def help(self) -> bool:
        """Work in the caller's thread if nobody is at it; tells whether we did."""
        if not self._busy.acquire(blocking=False):
            return False
        return self._work_and_release()

    def help_next(self, timeout: float) -> None:
        """Be the one who works next.  One is enough: it takes what all the others wait for."""
        if not self._heir.acquire(blocking=False):
            return
        try:
            is_ours = self._busy.acquire(timeout=timeout)
        finally:
            self._heir.release()
        if is_ours:
            self._work_and_release()

    def _work_and_release(self) -> bool:
        try:
            if self._is_closing:
                return False
            self._run_some()
        finally:
            self._busy.release()
        if self._waiting:
            self.call()
        return True

    def close(self) -> None:
        self._is_closing = True
        self.call()
        self._thread.join()
        with self._busy:
            if self._session is not None:
                self._session.db.close()
                self._session = None

    def _drive(self) -> None:
        while True:
            self._work.acquire()
            with self._busy:
                while self._waiting:
                    self._run_some()
            if self._is_closing:
                return

    def _run_some(self) -> None:
        batch: list[Request] = []
        weight = 0
        try:
            while weight < MOST_PER_BATCH:
                batch.append(self._waiting.popleft())
                weight += batch[-1].weight
        except IndexError:
            pass
        if batch:
            self._run(batch)

    def _run(self, batch: list[Request]) -> None:
        try:
            session = self._ready_session()
            answers = self._run_again(session, batch)
        except StoreUnavailable as error:
            # The disk or the server is in trouble: nothing was kept, and nothing is tried again.
            _log.warning("the store failed, and with it %d requests: %s", len(batch), error)
            self._drop_session()
            # Who waited meanwhile hears so at once: it was not begun, and may be tried elsewhere.
            while self._waiting:
                with suppress(IndexError):
                    batch.append(self._waiting.popleft())
            answers = [error] * len(batch)
        except BaseException as error:
            if len(batch) > 1:
                # One of them failed; alone, it fails only for its own caller.
                if not isinstance(error, PenstockError | Collision):
                    _log.warning("a batch broke and is run one by one", exc_info=error)
                for request in batch:
                    self._run([request])
                return
            answers = [error if isinstance(error, PenstockError) else _internal(error)]
        else:
            if session.books.woken:
                self._on_woken(session.books.woken)
        answer_all(batch, answers)

    def _run_again(self, session: SqlSession, batch: list[Request]) -> Sequence[Any]:
        """Run it, and once more if another transaction was in the way."""
        durable = any(request.is_durable for request in batch)
        for _ in range(MOST_COLLISIONS):
            try:
                return session.run(batch, durable=durable)
            except Collision as error:
                collision = error
        if len(batch) > 1:
            raise collision
        raise StoreUnavailable(f"too many at once: {collision}") from collision

    def _ready_session(self) -> SqlSession:
        if self._session is not None and not self._session.db.is_alive:
            self._drop_session()
        if self._session is None:
            self._session = self._open_session()
        return self._session

    @property
    def is_idle(self) -> bool:
        return not self._busy.locked()

    def _drop_session(self) -> None:
        """After an error of the storage the connection is not trusted: start from what is kept."""
        session, self._session = self._session, None
        if session is not None:
            session.db.abandon()


class GroupCommit:
    def __init__(
        self, open_session: Callable[[int], SqlSession], *, lanes: int, on_woken: Woken
    ) -> None:
        self._waiting: deque[Request] = deque()
        self._lanes = [
            Lane(self._waiting, lambda i=i: open_session(i), on_woken)  # type: ignore[misc]
            for i in range(lanes)
        ]
        self._gathered: dict[asyncio.AbstractEventLoop, list[Request]] = {}
        self._turns_elsewhere = 0  # of the loop, after a slow one
        self._next = 0
        self._is_closed = False  # nothing new is taken
        self._is_shut = False  # … and nobody works any more

    def submit(self, request: Request) -> None:
        if self._is_closed:
            raise ShuttingDown("the store is closed")
        loop = request.ticket.loop
        if loop is None:
            if len(self._lanes) == 1:  # otherwise the answer may come from any of them
                request.ticket.help = self.help
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

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        gathered = self._gathered.pop(loop)
        self._waiting.extend(gathered)
        if not (self._may_work_here(gathered) and self._work_here(loop)):
            self._call()

    def _may_work_here(self, gathered: list[Request]) -> bool:
        """Two threads that hand the interpreter lock to and fro lose a third of the rate.

        So while the disk is quick, the loop commits its short requests itself.
        """
        if self._turns_elsewhere:
            self._turns_elsewhere -= 1
            return False
        return len(self._lanes) == 1 and all(request.is_short for request in gathered)

    def _work_here(self, loop: asyncio.AbstractEventLoop) -> bool:
        began = loop.time()
        did_it = self._lanes[0].help()
        if loop.time() - began > SLOW_SECONDS:
            self._turns_elsewhere = TURNS_ELSEWHERE
        return did_it

    def _call(self) -> None:
        # The next one that is free.  If none is, they all look for more when they are done.
        for _ in self._lanes:
            self._next = (self._next + 1) % len(self._lanes)
            if self._lanes[self._next].is_idle:
                break
        self._lanes[self._next].call()
        if self._is_shut:
            self._refuse_the_rest()

    def close(self) -> None:
        """Finish what was taken, refuse what comes."""
        self._is_closed = True
        for lane in self._lanes:
            lane.close()
        self._is_shut = True
        self._refuse_the_rest()

    def _refuse_the_rest(self) -> None:
        """What slipped in while the lanes closed: nobody shall wait for an answer in vain."""
        while self._waiting:
            with suppress(IndexError):  # submitters and the closer may be at it together
                answer_all([self._waiting.popleft()], [ShuttingDown("the store is closed")])

    def help(self, timeout: float) -> None:
        """Called by a thread that waits for its answer: better to work than to be woken later."""
        self._lanes[self._next].help_next(timeout)


def answer_all(batch: Sequence[Request], answers: Sequence[Any]) -> None:
    """One call back into each event loop, however many wait there."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[Request, Any]]] = {}
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
                loop.call_soon(_answer_pairs, pairs)
            else:
                loop.call_soon_threadsafe(_answer_pairs, pairs)
        except RuntimeError:  # the loop is closed: nobody waits there any more
            continue


def _answer_pairs(pairs: list[tuple[Request, Any]]) -> None:
    for request, answer in pairs:
        try:
            request.ticket.answer(answer)
        except Exception:  # a mistake in one callback must not leave the others waiting
            _log.exception("a callback failed")


def _internal(error: BaseException) -> PenstockError:
    wrapped = PenstockError(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
