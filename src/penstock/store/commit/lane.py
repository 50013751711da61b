"""One write connection, driven by its own thread, by a waiting caller or by an event loop.

`_busy` admits one driver at a time.  When a driver is done, it checks for new requests and wakes
the thread if there are any, so no request is forgotten.

Only the thread waits for the disk, for other processes and for locks.  A disk may hang: an event
loop that waited for it could answer no request, not even a health check.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import msgspec

from penstock.domain.errors import (
    OutcomeUnknown,
    PenstockError,
    StoreUnavailable,
    TransactionBusy,
)
from penstock.store.announcements import Hints
from penstock.store.commit.outage import StoreOutage
from penstock.store.commit.requests import (
    Pending,
    StoreRequest,
    answer_all,
    fail_all,
    internal_error,
)
from penstock.store.commit.session import SqlSession
from penstock.store.database import Collision, WriteLockTimeout
from penstock.supervision.health import NodeHealth, NodePart
from penstock.supervision.threads import SupervisedThread, outage

CLOSING_SECONDS = 0.05
CLOSING_PATIENCE_S = 2.0
MAX_PER_BATCH = 5_000  # messages: a commit must not delay the next one for long

_log = logging.getLogger("penstock.store")

OnCommit = Callable[[Hints], None]
_NO_HINTS = Hints()


class PreparedBatch(msgspec.Struct, frozen=True):
    """A batch whose statements an event loop has run and which the thread commits."""

    session: SqlSession
    batch: list[StoreRequest]
    answers: Sequence[Any]
    hints: Hints
    loop: asyncio.AbstractEventLoop
    resume: Callable[[], None]


class Lane:
    """One session and the thread that may drive it.  Several lanes may share pending requests."""

    def __init__(
        self,
        waiting: Pending,
        open_session: Callable[[], SqlSession],
        on_commit: OnCommit,
        outage: StoreOutage,
        *,
        health: NodeHealth,
        stuck_ms: int,
    ) -> None:
        self._waiting = waiting
        self._outage = outage
        self._open_session = open_session
        self._session: SqlSession | None = open_session()
        # Each write takes its locks in the required order; several in one batch would break it.
        self._writes_alone = self._session.db.is_shared
        # A caller's own transaction may block its request: only its own thread can detect that.
        self.callers_may_sync = self._session.db.finds_deadlocks
        self._on_commit = on_commit
        self._busy = threading.Lock()
        self._next_helper = threading.Lock()
        self._work: SimpleQueue[None] = SimpleQueue()  # cheaper than a semaphore
        self._prepared: PreparedBatch | None = None
        self.is_committing = False
        self._is_closing = False
        self.unanswered: Sequence[StoreRequest] = ()  # taken and not answered yet
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
        return bool(self.unanswered) or bool(self._waiting)

    def call(self) -> None:
        """Wake the thread: there are pending requests."""
        self._work.put(None)

    def help(self) -> bool:
        """Drive in the caller's thread if lane and write lock are free; returns whether it did."""
        if not self._busy.acquire(blocking=False):
            return False
        return self._work_and_release()

    def help_next(self, timeout: float) -> None:
        """Become the next driver.  One helper is enough: it serves the others' requests, too."""
        if not self._next_helper.acquire(blocking=False):
            return
        try:
            is_ours = self._busy.acquire(timeout=timeout)
        finally:
            self._next_helper.release()
        if is_ours:
            self._work_and_release()

    def _work_and_release(self) -> bool:
        is_ours = False
        try:
            if self._is_closing:
                return False
            may_help = self.callers_may_sync or not self._waiting.has_durable()
            is_ours = not self._waiting or (may_help and self._try_write_lock())
            if is_ours:
                self._run_some()
        finally:
            self._busy.release()
        if self._waiting:  # only the thread waits for the write lock
            self.call()
        return is_ours

    def prepare(self, loop: asyncio.AbstractEventLoop, resume: Callable[[], None]) -> bool:
        """On a loop: run the statements here, and the commit unless it has to wait for the disk.

        Then the thread commits, and calls `resume` on the loop if requests have gathered meanwhile.
        """
        if not self._busy.acquire(blocking=False):
            return False
        if self._is_closing or not self._waiting:
            self._busy.release()
            return not self._is_closing
        if not self._try_write_lock():
            self._busy.release()
            return False
        session, batch = self._ready_session(), self._take_some()
        try:
            durable = any(request.is_durable for request in batch)
            answers = session.prepare(batch, durable=durable)
            is_handed_over = durable
            if not is_handed_over:
                session.finish()
                if self._outage.is_on:
                    self._outage.worked(is_write=True)
        except StoreUnavailable as error:
            failed = self._fail(batch, error)
            self._busy.release()
            self._answer(batch, failed)
            return True
        except BaseException:
            # Rolled back: the thread runs the batch again and finds the request that fails.
            self._put_back(batch)
            self._busy.release()
            return False
        if is_handed_over:
            self._prepared = PreparedBatch(
                session, batch, answers, session.transaction.hints(), loop, resume
            )
            self.is_committing = True
            self.call()
            return True
        self._busy.release()
        if self._waiting:  # requests that did not fit into the batch
            self.call()
        self._answer(batch, answers, session.transaction.hints())
        return True

    def close_connections(self, then: Callable[[], None]) -> None:
        """Close the session; the next request opens another, after `then`."""
        with self._busy:
            self._discard_session()
            then()
        if self._waiting:  # requests submitted meanwhile rely on us to wake the thread
            self.call()

    def close(self) -> None:
        """Finish requests that were taken, unless none advances for `CLOSING_PATIENCE_S`."""
        self._is_closing = True
        self.call()
        moves = -1
        while not self._thread.join(CLOSING_PATIENCE_S) and self._part.moves != moves:
            moves = self._part.moves
        if self._thread.is_alive() or not self._busy.acquire(timeout=CLOSING_PATIENCE_S):
            _log.error("the store does not respond; closing it with unfinished requests")
            error = OutcomeUnknown("the store was closed before it answered")
            fail_all(list(self.unanswered), error)
            return
        try:
            if self._session is not None:
                self._session.db.close()
                self._session = None
        finally:
            self._busy.release()

    def _drive(self) -> None:
        while not self._is_closing:
            self._work.get()
            if self._prepared is not None:
                self._commit(self._prepared)
            elif self._busy.acquire(blocking=False):
                self._run_all_and_release()
            # Otherwise another driver is at work; when done it wakes us if there is more.
        while not self._busy.acquire(timeout=CLOSING_SECONDS):
            if self._prepared is not None:
                self._commit(self._prepared)
        self._run_all_and_release()

    def _run_all_and_release(self) -> None:
        try:
            while self._waiting:
                self._run_some()
        finally:
            self._busy.release()

    def _commit(self, work: PreparedBatch) -> None:
        """Commit what a loop has prepared; the lane has stayed busy since then."""
        self._prepared = None
        answers: Sequence[Any] | None = work.answers
        try:
            work.session.finish()
            if self._outage.is_on:
                self._outage.worked(is_write=True)
        except StoreUnavailable as error:
            answers = self._fail(work.batch, error)
        except BaseException:
            answers = None
            self._run(work.batch)  # rolled back: it raises the same error again, handled there
        finally:
            self.is_committing = False
            self._busy.release()
        if self._waiting:
            # First, so that the loop prepares the next commit before it writes the answers.
            self._resume(work)
        if answers is not None:
            hints = work.hints if answers is work.answers else _NO_HINTS
            self._answer(work.batch, answers, hints)

    def _resume(self, work: PreparedBatch) -> None:
        try:
            work.loop.call_soon_threadsafe(work.resume)
        except RuntimeError:  # that loop is closed
            self.call()

    def _take_some(self) -> list[StoreRequest]:
        self.unanswered = batch = self._waiting.take(MAX_PER_BATCH, writes_alone=self._writes_alone)
        return batch

    def _put_back(self, batch: Sequence[StoreRequest]) -> None:
        self.unanswered = ()
        self._waiting.put_back(batch)

    def _answer(
        self,
        batch: Sequence[StoreRequest],
        answers: Sequence[Any],
        hints: Hints = _NO_HINTS,
    ) -> None:
        try:
            if hints:
                self._on_commit(hints)
        finally:
            answer_all(batch, answers)
            self._part.moves += 1
            if batch is self.unanswered:
                self.unanswered = ()

    def _fail_all(self, error: StoreUnavailable) -> None:
        """The thread itself failed: answer every request that waits for it."""
        unanswered, self.unanswered = self.unanswered, ()
        is_ours = self._prepared is not None  # a loop has left the lane to the thread
        self._prepared, self.is_committing = None, False
        if is_ours or self._busy.acquire(blocking=False):  # a transaction may be open
            self._discard_session()
            self._busy.release()
        # Last: a caller that retries at once must find the lane free.
        self._waiting.refuse_all(error)
        fail_all(unanswered, error)

    def _run_some(self) -> None:
        if not self._waiting:
            return
        try:
            self._wait_for_write_lock()  # first: requests that arrive meanwhile join the batch
        except Exception as error:
            # Any error that keeps the writer from its store is an outage for its callers.
            if not isinstance(error, StoreUnavailable):
                _log.error("the store cannot be opened", exc_info=error)
            batch: list[StoreRequest] = []
            failed = self._fail(batch, outage(error))
            self._answer(batch, failed)
            return
        batch = self._take_some()
        if batch:
            self._run(batch)
        elif self._session is not None:  # another driver was faster
            self._session.db.release_write_lock()

    def _try_write_lock(self) -> bool:
        """Acquire it without waiting for other processes or for the disk.

        Returns False on an error, too: the thread runs into the same one and answers with it.
        """
        session = self._session
        try:
            if session is None or not session.db.is_alive:
                return False
            if not session.db.acquire_write_lock(wait=False):
                return False
        except Exception:
            return False
        # A sync may have failed in another process.
        if not session.db.is_shared and not session.db.is_alive:
            session.db.release_write_lock()
            return False
        return True

    def _wait_for_write_lock(self) -> None:
        while True:
            db = self._ready_session().db
            if db.acquire_write_lock(wait=True) and db.is_alive:
                return

    def _run(self, batch: list[StoreRequest]) -> None:
        hints = _NO_HINTS
        try:
            session = self._ready_session()
            durable = any(request.is_durable for request in batch)
            answers: Sequence[Any] = session.run(batch, durable=durable)
            if self._outage.is_on:
                self._outage.worked(is_write=True)
        except TransactionBusy as error:
            # This thread's own transaction holds the lock: its requests fail, others can wait.
            thread = threading.get_ident()
            own = [request for request in batch if request.ticket.thread == thread]
            self._put_back([r for r in batch if r.ticket.thread != thread])
            self._answer(own, [error] * len(own))
            return
        except StoreUnavailable as error:
            answers = self._fail(batch, error)
        except BaseException as error:
            if len(batch) > 1:
                # One of them failed; run alone, it fails only for its own caller.
                if not isinstance(error, PenstockError | Collision):
                    _log.warning("a batch failed; running its requests one by one", exc_info=error)
                for request in batch:
                    self._run([request])
                self.unanswered = ()
                return
            answers = [error if isinstance(error, PenstockError) else internal_error(error)]
        else:
            hints = session.transaction.hints()
        self._answer(batch, answers, hints)

    def _fail(self, batch: list[StoreRequest], error: StoreUnavailable) -> list[Any]:
        """The disk or the server failed: nothing was kept, and nothing is retried."""
        if not isinstance(error, WriteLockTimeout):
            self._discard_session()
        # Pending requests are refused at once: not started, they may be retried elsewhere.
        batch += self._waiting.take_all()
        self._outage.failed(error, is_write=True)
        return [error] * len(batch)

    def _ready_session(self) -> SqlSession:
        if self._session is not None and not self._session.db.is_alive:
            self._discard_session()
        if self._session is None:
            self._session = self._open_session()
        return self._session

    @property
    def is_idle(self) -> bool:
        return not self._busy.locked()

    def _discard_session(self) -> None:
        """After a storage error: the next session reads everything from the store again."""
        session, self._session = self._session, None
        if session is not None:
            try:
                session.db.abandon()
            except Exception:
                _log.exception("a connection to the store could not be closed")
