"""A backing that is opened when it is first needed, once, and anew in a forked child."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.client.backend import Backing


class Opening:
    def __init__(self, open_it: Callable[[], Backing]) -> None:
        self._open_it = open_it
        self._lock = threading.Lock()
        self._backing: Backing | None = None
        self._inherited: list[Backing] = []
        reset = weakref.WeakMethod(self._forked)
        os.register_at_fork(after_in_child=lambda: (reset() or _nothing)())

    @property
    def is_open(self) -> bool:
        return self._backing is not None

    def get(self) -> Backing:
        backing = self._backing
        if backing is None:
            with self._lock:
                if self._backing is None:
                    self._backing = self._open_it()
                backing = self._backing
        return backing

    async def get_async(self) -> Backing:
        """Open in a thread, so that the event loop runs on meanwhile."""
        backing = self._backing
        return await asyncio.to_thread(self.get) if backing is None else backing

    @contextmanager
    def standing_in(self, other: Backing) -> Iterator[None]:
        """For a while everything goes to another backing; what was open stays so."""
        with self._lock:
            before, self._backing = self._backing, other
        try:
            yield
        finally:
            with self._lock:
                self._backing = before

    def close(self) -> None:
        with self._lock:
            backing, self._backing = self._backing, None
        if backing is not None:
            backing.close()

    def _forked(self) -> None:
        """In the child: its threads are the parent's, and did not come along.

        What the parent has open is neither used nor closed: to close it would tell the database
        that the parent is gone.
        """
        self._lock = threading.Lock()
        if self._backing is not None:
            self._inherited.append(self._backing)
            self._backing = None


def _nothing() -> None:
    pass
