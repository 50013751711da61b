"""A backend that is opened at its first use, and again in a forked child."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.client.backend import Backend


class LazyBackend:
    def __init__(self, open_it: Callable[[], Backend]) -> None:
        self._open_it = open_it
        self._lock = threading.Lock()
        self._backend: Backend | None = None
        self._inherited: list[Backend] = []
        reset = weakref.WeakMethod(self._drop_in_child)
        os.register_at_fork(after_in_child=lambda: (reset() or _nothing)())

    @property
    def is_open(self) -> bool:
        return self._backend is not None

    def get(self) -> Backend:
        backend = self._backend
        if backend is None:
            with self._lock:
                if self._backend is None:
                    self._backend = self._open_it()
                backend = self._backend
        return backend

    async def get_async(self) -> Backend:
        """Open in a thread, so that the event loop is not blocked."""
        backend = self._backend
        return await asyncio.to_thread(self.get) if backend is None else backend

    @contextmanager
    def substitute(self, other: Backend) -> Iterator[None]:
        """Use another backend inside this context; the original one stays open."""
        with self._lock:
            before, self._backend = self._backend, other
        try:
            yield
        finally:
            with self._lock:
                self._backend = before

    def close(self) -> None:
        with self._lock:
            backend, self._backend = self._backend, None
        if backend is not None:
            backend.close()

    def _drop_in_child(self) -> None:
        """In the child: drop the backend, whose threads exist only in the parent.

        The parent's backend is neither used nor closed: closing it would end the parent's
        connections to the database.
        """
        self._lock = threading.Lock()
        if self._backend is not None:
            self._inherited.append(self._backend)
            self._backend = None


def _nothing() -> None:
    pass
