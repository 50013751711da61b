"""Opens a SQLite store under its write lock, so that no two processes do so at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.store.sqlite.write_lock import WriteLock


@contextmanager
def opening(write_lock: WriteLock) -> Iterator[bool]:
    """Hold the write lock and register; yields whether no other process has the store open."""
    write_lock.acquire()
    try:
        yield write_lock.enter()
    except BaseException:
        write_lock.leave()
        raise
    finally:
        write_lock.release()
