"""One run at a time on the tables of a lake.

The lock is a file that names its holder; of several processes, one can create it.  A thread renews
it, and a lock that was not renewed in time is taken over.  A run whose lock was taken over (its
machine was asleep) stops before it replaces another table.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
from py4j.protocol import Py4JError

from penstock.domain.errors import InvalidRequest, LakeUnreachable
from penstock.domain.lake.run_lock import RENEWED_EVERY_MS, RunLock, is_expired, renew
from penstock.pipeline.lock_files import LockFile

WAIT_S = 2.0  # between two looks at the lock of another run


class PipelineStopped(Exception):
    """The run cannot start or go on; nothing is damaged.  `code` is stable."""

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code


class LakeLock:
    def __init__(self, file: LockFile, lock: RunLock, clock: Callable[[], int]) -> None:
        self._file = file
        self._lock = lock
        self._clock = clock
        self._is_lost = False

    def acquire(self) -> RunLock | None:
        """Acquire the lock; returns the lock of another run if that holds it."""
        wanted = renew(self._lock, now=self._clock())
        while True:
            text = self._file.read()
            if text is not None:
                held = _decode(text, self._file.place)
                if not is_expired(held, now=self._clock()):
                    return held
            if self._file.swap(text, _encode(wanted)):
                self._lock = wanted
                return None

    @contextmanager
    def renewing(self, every_s: float = RENEWED_EVERY_MS / 1000) -> Iterator[None]:
        """Hold the acquired lock inside the block; release it in the end."""
        stop = threading.Event()
        thread = threading.Thread(target=self._renew_until, args=(stop, every_s), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            self.release()

    def check(self) -> None:
        """Raises PipelineStopped if another run may have taken the lock over."""
        if self._is_lost or is_expired(self._lock, now=self._clock()):
            raise PipelineStopped(
                f"{self._file.place} was not renewed in time, and another run may be at work; "
                "run again",
                "lock_lost",
            )

    def renew(self) -> None:
        renewed = renew(self._lock, now=self._clock())
        if self._file.swap(_encode(self._lock), _encode(renewed)):
            self._lock = renewed
        else:
            self._is_lost = True

    def release(self) -> None:
        self._file.swap(_encode(self._lock), None)

    def _renew_until(self, stop: threading.Event, every_s: float) -> None:
        while not stop.wait(every_s):
            try:
                self.renew()
            except (OSError, LakeUnreachable, Py4JError):
                continue  # the next renewal may succeed; `check` notices if none does


@contextmanager
def hold(
    lock: LakeLock,
    *,
    waits: bool,
    on_wait: Callable[[RunLock], None],
    pause: Callable[[float], object] | None = None,
) -> Iterator[LakeLock]:
    """Hold the lock inside the block; raises PipelineStopped if another run has it."""
    pause = pause or threading.Event().wait
    is_noted = False
    while (holder := lock.acquire()) is not None:
        if not waits:
            raise PipelineStopped(
                f"another run is at work on these tables: {holder}; --wait waits for it",
                "lake_busy",
            )
        if not is_noted:
            on_wait(holder)
            is_noted = True
        pause(WAIT_S)
    with lock.renewing():
        yield lock


def _encode(lock: RunLock) -> str:
    return msgspec.json.encode(lock).decode()


def _decode(text: str, place: str) -> RunLock:
    try:
        return msgspec.json.decode(text, type=RunLock)
    except msgspec.MsgspecError as error:
        raise InvalidRequest(
            f"{place} is not a lock that this version can read; delete it if no run is at work"
        ) from error
