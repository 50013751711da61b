"""Reads beside the writer: a few read-only sessions, each used by one thread at a time."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from penstock.domain.errors import PenstockError, ShuttingDown, StoreUnavailable
from penstock.store.answering import answer_all
from penstock.store.database import Collision
from penstock.store.outage import Outage
from penstock.store.session import Kind, Request, SqlSession


class Readers:
    def __init__(
        self, open_session: Callable[[], SqlSession], outage: Outage, *, count: int = 2
    ) -> None:
        self._open_session = open_session
        self._outage = outage
        self._count = count
        self._free: SimpleQueue[SqlSession | None] = SimpleQueue()
        for _ in range(count):
            self._free.put(None)  # opened when first needed
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="penstock-reader")
        self._closing = threading.Lock()
        self._is_closed = False
        self._asked = itertools.count(1)
        self._latest = 0
        self._failed: tuple[int, StoreUnavailable] | None = None

    def submit(self, what: Callable[[Any], Any]) -> Request:
        if self._is_closed:
            raise ShuttingDown("the store is closed")
        request = Request(Kind.WRITE, what)
        self._latest = number = next(self._asked)
        if request.ticket.loop is None:
            self._run(request, number)
        else:
            self._pool.submit(self._run, request, number)
        return request

    def shut(self) -> None:
        """Close the sessions, so that nothing holds the files; they open again when needed."""
        with self.kept_out():
            pass

    @contextmanager
    def kept_out(self) -> Iterator[None]:
        """Meanwhile none is open, and none is opened: one that is would hold on to the old."""
        with self._closing:
            sessions = [self._free.get() for _ in range(self._count)]
            try:
                for session in sessions:
                    if session is not None:
                        session.db.close()
                yield
            finally:
                for _ in sessions:
                    self._free.put(None)

    def close(self) -> None:
        self._is_closed = True
        self._pool.shutdown(wait=True)
        self.shut()

    def _run(self, request: Request, number: int) -> None:
        session = self._free.get()
        try:
            try:
                self._refuse_with_the_others(number)
                if session is not None and not session.db.is_alive:
                    session.db.close()
                    session = None
                session = session or self._open_session()
                try:
                    answer = session.read(request.payload)
                except Collision:  # what it wanted to read was taken away just now
                    answer = session.read(request.payload)
            except PenstockError as error:
                answer = error
                if isinstance(error, StoreUnavailable):
                    self._failed = (self._latest, error)
                    self._outage.failed(error, is_write=False)
                    if session is not None:
                        session.db.close()
                        session = None
            except Exception as error:
                answer = PenstockError(f"{type(error).__name__}: {error}")
                answer.__cause__ = error
            else:
                self._outage.worked(is_write=False)
        finally:
            self._free.put(session)
        answer_all([request], [answer])

    def _refuse_with_the_others(self, number: int) -> None:
        """Who waited while the store failed hears so at once, instead of finding out in turn."""
        if self._failed is not None and number <= self._failed[0]:
            raise self._failed[1]
