"""Reads that run beside the writer: a few read-only sessions, each used by one thread at a time.

Reads run in our own threads even if the caller could wait: a disk that hangs must not block it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any

from penstock.domain.errors import OutcomeUnknown, PenstockError, ShuttingDown, StoreUnavailable
from penstock.store.commit.outage import StoreOutage
from penstock.store.commit.requests import (
    Pending,
    RequestKind,
    StoreRequest,
    answer_all,
    fail_all,
    internal_error,
)
from penstock.store.commit.session import SqlSession
from penstock.store.database import Collision
from penstock.supervision.health import NodeHealth, NodePart
from penstock.supervision.threads import SupervisedThread

CLOSING_PATIENCE_S = 2.0
CLOSE_PATIENCE_S = 10.0  # for reads in progress


class Readers:
    def __init__(
        self,
        open_session: Callable[[], SqlSession],
        outage: StoreOutage,
        *,
        health: NodeHealth,
        stuck_ms: int,
        count: int = 2,
    ) -> None:
        self._open_session = open_session
        self._outage = outage
        self._count = count
        self._health = health
        self._free: SimpleQueue[SqlSession | None] = SimpleQueue()
        for _ in range(count):
            self._free.put(None)  # opened when first needed
        self.pending = Pending()
        self._work = threading.Semaphore(0)
        self._unanswered: dict[int, StoreRequest] = {}  # by thread
        self._part = NodePart("readers", stuck_ms=stuck_ms, has_work=self._has_work)
        self._threads: list[SupervisedThread] = []
        self._starting = threading.Lock()
        self._closing = threading.Lock()
        self._is_closed = False
        self._asked = itertools.count(1)
        self._latest = 0
        self._failed: tuple[int, StoreUnavailable] | None = None
        self._start_thread()

    def submit(self, what: Callable[[Any], Any]) -> StoreRequest:
        if self._is_closed:
            raise ShuttingDown("the store is closed")
        self._latest = number = next(self._asked)
        request = StoreRequest(RequestKind.WRITE, (what, number))
        if len(self._threads) < self._count and self._has_work():
            with suppress(RuntimeError):  # too many threads in the system: one reader is enough
                self._start_thread()
        self.pending.append(request)
        self._work.release()
        if self._is_closed:  # closed since the check above
            self._refuse_the_rest()
        return request

    def unanswered(self) -> Iterable[StoreRequest]:
        """Requests that were taken but not yet answered."""
        return list(self._unanswered.values())

    def close_sessions(self) -> None:
        """Close the sessions, so that no file stays open; they reopen when needed."""
        with self.all_closed():
            pass

    @contextmanager
    def all_closed(self, patience_s: float = CLOSE_PATIENCE_S) -> Iterator[None]:
        """Keep all sessions closed inside the block: they would use the old state of the files.

        Raises StoreUnavailable if a read does not end.
        """
        with self._closing:
            sessions: list[SqlSession | None] = []
            try:
                for _ in range(self._count):
                    sessions.append(self._next_session(patience_s))
                for i, session in enumerate(sessions):
                    sessions[i] = None
                    if session is not None:
                        session.db.close()
                yield
            finally:
                for session in sessions:
                    self._free.put(session)

    def close(self) -> None:
        self._is_closed = True
        for _ in self._threads:
            self._work.release()
        have_ended = [thread.join(CLOSING_PATIENCE_S) for thread in self._threads]
        if not all(have_ended):
            error = OutcomeUnknown("the store was closed before it answered")
            fail_all(list(self._unanswered.values()), error)
        self._refuse_the_rest()
        try:
            with self.all_closed(CLOSING_PATIENCE_S):
                pass
        except StoreUnavailable as hanging:  # its thread exits with the process
            self._outage.failed(hanging, is_write=False)

    def _has_work(self) -> bool:
        return bool(self._unanswered) or bool(self.pending)

    def _start_thread(self) -> None:
        with self._starting:
            if len(self._threads) < self._count:
                thread = SupervisedThread(
                    f"penstock-reader-{len(self._threads)}",
                    self._drive,
                    health=self._health,
                    part=self._part,
                    on_failure=self._fail_unanswered,
                )
                thread.start()
                self._threads.append(thread)

    def _drive(self) -> None:
        while not self._is_closed or self.pending:
            self._work.acquire()
            for request in self.pending.take(1):
                self._unanswered[threading.get_ident()] = request
                answer = self._run(*request.payload)
                answer_all([request], [answer])
                del self._unanswered[threading.get_ident()]
                self._part.moves += 1

    def _fail_unanswered(self, error: StoreUnavailable) -> None:
        """Called in the thread that failed."""
        request = self._unanswered.pop(threading.get_ident(), None)
        if request is not None:
            answer_all([request], [error])

    def _refuse_the_rest(self) -> None:
        self.pending.refuse_all(ShuttingDown("the store is closed"))

    def _next_session(self, patience_s: float) -> SqlSession | None:
        try:
            return self._free.get(timeout=patience_s)
        except Empty:
            raise StoreUnavailable(f"a read has not finished for {patience_s:g} s") from None

    def _run(self, what: Callable[[Any], Any], number: int) -> Any:
        session = self._free.get()  # one per thread; `all_closed` takes them for a moment
        try:
            self._refuse_if_failed_since(number)
            if session is not None and not session.db.is_alive:
                session.db.close()
                session = None
            session = session or self._open_session()
            try:
                answer = session.read(what)
            except Collision:  # a table that it read has just been dropped
                answer = session.read(what)
        except PenstockError as error:
            answer = error
            if isinstance(error, StoreUnavailable):
                self._failed = (self._latest, error)
                self._outage.failed(error, is_write=False)
                if session is not None:
                    session.db.close()
                    session = None
        except Exception as error:
            answer = internal_error(error)
        else:
            if self._outage.is_on:
                self._outage.worked(is_write=False)
        finally:
            self._free.put(session)
        return answer

    def _refuse_if_failed_since(self, number: int) -> None:
        """Refuse reads that waited while the store failed, instead of trying them one by one."""
        if self._failed is not None and number <= self._failed[0]:
            raise self._failed[1]
