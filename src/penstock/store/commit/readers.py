"""Reads beside the writer: a few read-only sessions, each used by one thread at a time.

The threads are our own, also for callers that have one: a disk that hangs must not keep them.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any

from penstock.domain.errors import OutcomeUnknown, PenstockError, ShuttingDown, StoreUnavailable
from penstock.store.commit.answering import answer_all, internal
from penstock.store.commit.outage import Outage
from penstock.store.commit.pending import Pending
from penstock.store.commit.session import Kind, Request, SqlSession
from penstock.store.database import Collision
from penstock.supervision.health import Health, NodePart
from penstock.supervision.threads import SupervisedThread

CLOSING_PATIENCE_S = 2.0
KEEP_OUT_PATIENCE_S = 10.0  # for reads that hold their sessions


class Readers:
    def __init__(
        self,
        open_session: Callable[[], SqlSession],
        outage: Outage,
        *,
        health: Health,
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
        self._begun: dict[int, Request] = {}  # by thread
        self._part = NodePart("readers", stuck_ms=stuck_ms, has_work=self._has_work)
        self._threads: list[SupervisedThread] = []
        self._starting = threading.Lock()
        self._closing = threading.Lock()
        self._is_closed = False
        self._asked = itertools.count(1)
        self._latest = 0
        self._failed: tuple[int, StoreUnavailable] | None = None
        self._start_thread()

    def submit(self, what: Callable[[Any], Any]) -> Request:
        if self._is_closed:
            raise ShuttingDown("the store is closed")
        self._latest = number = next(self._asked)
        request = Request(Kind.WRITE, (what, number))
        if len(self._threads) < self._count and self._has_work():
            with suppress(RuntimeError):  # too many threads: one reads, too
                self._start_thread()
        self.pending.append(request)
        self._work.release()
        if self._is_closed:  # it slipped in
            self._refuse_the_rest()
        return request

    def begun(self) -> Iterable[Request]:
        """What was taken and is not answered yet."""
        return list(self._begun.values())

    def shut(self) -> None:
        """Close the sessions, so that nothing holds the files; they open again when needed."""
        with self.kept_out():
            pass

    @contextmanager
    def kept_out(self, patience_s: float = KEEP_OUT_PATIENCE_S) -> Iterator[None]:
        """Meanwhile none is open, and none is opened: one that is would hold on to the old.

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
            self._answer_all_begun(OutcomeUnknown("the store was closed before it answered"))
        self._refuse_the_rest()
        try:
            with self.kept_out(CLOSING_PATIENCE_S):
                pass
        except StoreUnavailable as error:  # its thread ends with the process
            self._outage.failed(error, is_write=False)

    def _has_work(self) -> bool:
        return bool(self._begun) or bool(self.pending)

    def _start_thread(self) -> None:
        with self._starting:
            if len(self._threads) < self._count:
                thread = SupervisedThread(
                    f"penstock-reader-{len(self._threads)}",
                    self._drive,
                    health=self._health,
                    part=self._part,
                    on_failure=self._fail_begun,
                )
                thread.start()
                self._threads.append(thread)

    def _drive(self) -> None:
        while not self._is_closed or self.pending:
            self._work.acquire()
            for request in self.pending.take(1):
                self._begun[threading.get_ident()] = request
                answer = self._run(*request.payload)
                answer_all([request], [answer])
                del self._begun[threading.get_ident()]
                self._part.moved()

    def _fail_begun(self, error: StoreUnavailable) -> None:
        """In the thread that failed."""
        request = self._begun.pop(threading.get_ident(), None)
        if request is not None:
            answer_all([request], [error])

    def _answer_all_begun(self, error: StoreUnavailable) -> None:
        begun = list(self._begun.values())
        answer_all(begun, [error] * len(begun))

    def _refuse_the_rest(self) -> None:
        self.pending.refuse_all(ShuttingDown("the store is closed"))

    def _next_session(self, patience_s: float) -> SqlSession | None:
        try:
            return self._free.get(timeout=patience_s)
        except Empty:
            raise StoreUnavailable(f"a read has not ended for {patience_s:g} s") from None

    def _run(self, what: Callable[[Any], Any], number: int) -> Any:
        session = self._free.get()  # one for each thread; `kept_out` takes them for a moment
        try:
            self._refuse_with_the_others(number)
            if session is not None and not session.db.is_alive:
                session.db.close()
                session = None
            session = session or self._open_session()
            try:
                answer = session.read(what)
            except Collision:  # what it wanted to read was taken away just now
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
            answer = internal(error)
        else:
            self._outage.worked(is_write=False)
        finally:
            self._free.put(session)
        return answer

    def _refuse_with_the_others(self, number: int) -> None:
        """Who waited while the store failed hears so at once, instead of finding out in turn."""
        if self._failed is not None and number <= self._failed[0]:
            raise self._failed[1]
