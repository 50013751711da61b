"""One connection that writes, and whoever works on it: its own thread, a caller, or an event loop.

Only one at a time; `busy` says so.  Whoever is done looks whether more has come, and calls the
thread if so: nothing that waits is forgotten.

Only the thread waits for the disk, for other processes and for locks.  A disk may hang: an event
loop that waited for it could answer nobody, not even a health check.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.domain.errors import (
    OutcomeUnknown,
    PenstockError,
    StoreUnavailable,
    TransactionBusy,
)
from penstock.store.commit.answering import answer_all, internal
from penstock.store.commit.half_done import HalfDone
from penstock.store.commit.outage import Outage
from penstock.store.commit.pending import Pending
from penstock.store.commit.session import Request, SqlSession
from penstock.store.database import Collision, Occupied, Overtaken
from penstock.supervision.health import Health, NodePart
from penstock.supervision.restarts import outage
from penstock.supervision.threads import SupervisedThread

MOST_COLLISIONS = 5
MOST_OVERTAKEN = 1_000  # each of them means that somebody else got on
CLOSING_SECONDS = 0.05
CLOSING_PATIENCE_S = 2.0
MOST_PER_BATCH = 5_000  # messages: a commit must not keep the next ones waiting for long

_log = logging.getLogger("penstock.store")

Woken = Callable[[Mapping[int, int]], None]
_NOBODY: Mapping[int, int] = {}


class Lane:
    """One session and the thread that may drive it.  Several lanes may share one waiting line."""

    def __init__(
        self,
        waiting: Pending,
        open_session: Callable[[], SqlSession],
        on_woken: Woken,
        outage: Outage,
        *,
        health: Health,
        stuck_ms: int,
    ) -> None:
        self._waiting = waiting
        self._outage = outage
        self._open_session = open_session
        self._session: SqlSession | None = open_session()
        # A write takes its locks in one order; two of them together, or with others, do not.
        self._writes_alone = self._session.db.is_shared
        # A caller's own transaction may block its own request: only its thread can tell.
        self.helps_with_syncs = self._session.db.finds_deadlocks
        self._on_woken = on_woken
        self._busy = threading.Lock()
        self._heir = threading.Lock()
        self._work = threading.Semaphore(0)
        self._half_done: HalfDone | None = None
        self.is_committing = False
        self._is_closing = False
        self.begun: Sequence[Request] = ()  # taken, and not answered yet
        self._part = NodePart("writer", stuck_ms=stuck_ms, has_work=self._has_work)
        self._thread = SupervisedThread(
            "penstock-writer",
            self._drive,
            health=health,
            part=self._part,
            on_failure=self._fail_all,
        )
        self._thread.start()

    def _has_work(self) -> bool:
        return bool(self.begun) or bool(self._waiting)

    def call(self) -> None:
        """Something waits: wake the thread."""
        self._work.release()

    def help(self) -> bool:
        """Work in the caller's thread if nobody is at it, here or in another process.

        Tells whether we did.
        """
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
        is_ours = False
        try:
            if self._is_closing:
                return False
            may_help = self.helps_with_syncs or not self._waiting.has_durable()
            is_ours = not self._waiting or (may_help and self._is_our_turn())
            if is_ours:
                self._run_some()
        finally:
            self._busy.release()
        if self._waiting:  # to line up takes time, and is the thread's business
            self.call()
        return is_ours

    def prepare(self, loop: asyncio.AbstractEventLoop, resume: Callable[[], None]) -> bool:
        """On a loop: run the statements here, and the commit unless it has to wait for the disk.

        That one is the thread's; `resume` is called on the loop when something has gathered
        meanwhile.
        """
        if not self._busy.acquire(blocking=False):
            return False
        if self._is_closing or not self._waiting:
            self._busy.release()
            return not self._is_closing
        if not self._is_our_turn():
            self._busy.release()
            return False
        session, batch = self._ready_session(), self._take_some()
        try:
            durable = any(request.is_durable for request in batch)
            answers = session.prepare(batch, durable=durable)
            is_handed_over = durable
            if not is_handed_over:
                session.finish()
                self._outage.worked(is_write=True)
        except StoreUnavailable as error:
            failed = self._fail(batch, error)
            self._busy.release()
            self._answer(batch, failed)
            return True
        except BaseException:
            # It was rolled back; the thread runs it again and finds out whose fault it is.
            self._put_back(batch)
            self._busy.release()
            return False
        if is_handed_over:
            self._half_done = HalfDone(session, batch, answers, session.books.woken, loop, resume)
            self.is_committing = True
            self.call()
            return True
        self._busy.release()
        if self._waiting:  # what did not fit in
            self.call()
        self._answer(batch, answers, session.books.woken)
        return True

    def let_go(self, then: Callable[[], None]) -> None:
        """Close the session; the next request opens another, after `then`."""
        with self._busy:
            self._drop_session()
            then()
        if self._waiting:  # whoever came meanwhile found us at it, and trusts that we look
            self.call()

    def close(self) -> None:
        """Finish what was taken, unless nothing of it is finished for `CLOSING_PATIENCE_S`."""
        self._is_closing = True
        self.call()
        moves = -1
        while not self._thread.join(CLOSING_PATIENCE_S):
            if self._part.moves == moves:
                break
            moves = self._part.moves
        if self._thread.is_alive() or not self._busy.acquire(timeout=CLOSING_PATIENCE_S):
            _log.error("the store does not answer; it is closed without finishing what it began")
            begun = list(self.begun)
            answer_all(
                begun, [OutcomeUnknown("the store was closed before it answered")] * len(begun)
            )
            return
        try:
            if self._session is not None:
                self._session.db.close()
                self._session = None
        finally:
            self._busy.release()

    def _drive(self) -> None:
        while not self._is_closing:
            self._work.acquire()
            if self._half_done is not None:
                self._commit(self._half_done)
            elif self._busy.acquire(blocking=False):
                self._run_all_and_release()
            # Otherwise somebody is at it, who looks for more when done, and calls.
        while not self._busy.acquire(timeout=CLOSING_SECONDS):
            if self._half_done is not None:
                self._commit(self._half_done)
        self._run_all_and_release()

    def _run_all_and_release(self) -> None:
        try:
            while self._waiting:
                self._run_some()
        finally:
            self._busy.release()

    def _commit(self, work: HalfDone) -> None:
        """Finish what a loop has prepared; the lane was busy with it all the while."""
        self._half_done = None
        answers: Sequence[Any] | None = work.answers
        try:
            work.session.finish()
            self._outage.worked(is_write=True)
        except StoreUnavailable as error:
            answers = self._fail(work.batch, error)
        except BaseException:
            answers = None
            self._run(work.batch)  # it was rolled back: what is wrong shows again
        finally:
            self.is_committing = False
            self._busy.release()
        if self._waiting:
            # First, so that the loop has work for the disk before it writes the answers.
            self._resume(work)
        if answers is not None:
            self._answer(work.batch, answers, work.woken if answers is work.answers else _NOBODY)

    def _resume(self, work: HalfDone) -> None:
        try:
            work.loop.call_soon_threadsafe(work.resume)
        except RuntimeError:  # that loop is closed
            self.call()

    def _take_some(self) -> list[Request]:
        self.begun = batch = self._waiting.take(MOST_PER_BATCH, writes_alone=self._writes_alone)
        return batch

    def _put_back(self, batch: Sequence[Request]) -> None:
        self.begun = ()
        self._waiting.put_back(batch)

    def _answer(
        self, batch: Sequence[Request], answers: Sequence[Any], woken: Mapping[int, int] = _NOBODY
    ) -> None:
        try:
            if woken:
                self._on_woken(woken)
        finally:
            answer_all(batch, answers)
            self._part.moved()
            if batch is self.begun:
                self.begun = ()

    def _fail_all(self, error: StoreUnavailable) -> None:
        """The thread failed where nothing should: whatever waits for it is answered."""
        begun, self.begun = self.begun, ()
        is_ours = self._half_done is not None  # a loop has left the lane to the thread
        self._half_done, self.is_committing = None, False
        if is_ours or self._busy.acquire(blocking=False):  # a transaction may be open
            self._drop_session()
            self._busy.release()
        # Last: a caller that asks again at once must find the lane free, and is not refused here.
        self._waiting.refuse_all(error)
        answer_all(begun, [error] * len(begun))

    def _run_some(self) -> None:
        if not self._waiting:
            return
        try:
            self._await_turn()  # first: what comes until then is done as well
        except Exception as error:
            # Whatever keeps the writer from its store is an outage for those who wait for it.
            if not isinstance(error, StoreUnavailable):
                _log.error("the store cannot be opened", exc_info=error)
            batch: list[Request] = []
            failed = self._fail(batch, outage(error))
            self._answer(batch, failed)
            return
        batch = self._take_some()
        if batch:
            self._run(batch)
        elif self._session is not None:  # somebody was faster
            self._session.db.give_turn_back()

    def _is_our_turn(self) -> bool:
        """Without waiting for anybody, nor for the disk.  False also if that fails: the thread
        meets the same error, and answers with it.
        """
        session = self._session
        try:
            if session is None or not session.db.is_alive or not session.db.take_turn(wait=False):
                return False
        except Exception:
            return False
        # Another process may have found that a sync failed.
        if not session.db.is_shared and not session.db.is_alive:
            session.db.give_turn_back()
            return False
        return True

    def _await_turn(self) -> None:
        while True:
            db = self._ready_session().db
            if db.take_turn(wait=True) and db.is_alive:
                return

    def _run(self, batch: list[Request]) -> None:
        woken = _NOBODY
        try:
            session = self._ready_session()
            answers = self._run_again(session, batch)
            self._outage.worked(is_write=True)
        except TransactionBusy as error:
            # The thread that works here holds the lock itself; the others can wait for it.
            thread = threading.get_ident()
            own = [request for request in batch if request.ticket.thread == thread]
            self._put_back([r for r in batch if r.ticket.thread != thread])
            self._answer(own, [error] * len(own))
            return
        except StoreUnavailable as error:
            answers = self._fail(batch, error)
        except BaseException as error:
            if len(batch) > 1:
                # One of them failed; alone, it fails only for its own caller.
                if not isinstance(error, PenstockError | Collision):
                    _log.warning("a batch broke and is run one by one", exc_info=error)
                for request in batch:
                    self._run([request])
                self.begun = ()
                return
            answers = [error if isinstance(error, PenstockError) else internal(error)]
        else:
            woken = session.books.woken
        self._answer(batch, answers, woken)

    def _fail(self, batch: list[Request], error: StoreUnavailable) -> list[Any]:
        """The disk or the server is in trouble: nothing was kept, and nothing is tried again."""
        if not isinstance(error, Occupied):
            self._drop_session()
        # Who waited meanwhile hears so at once: it was not begun, and may be tried elsewhere.
        batch += self._waiting.take_all()
        self._outage.failed(error, is_write=True)
        return [error] * len(batch)

    def _run_again(self, session: SqlSession, batch: list[Request]) -> Sequence[Any]:
        """Run it, and once more if another transaction was in the way."""
        durable = any(request.is_durable for request in batch)
        collisions = overtaken = 0
        while collisions < MOST_COLLISIONS and overtaken < MOST_OVERTAKEN:
            if collisions:
                session.db.step_back(collisions)
            try:
                return session.run(batch, durable=durable)
            except Overtaken as error:
                overtaken += 1
                collision: Collision = error
            except Collision as error:
                collisions += 1
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
            try:
                session.db.abandon()
            except Exception:
                _log.exception("a connection to the store could not be closed")
