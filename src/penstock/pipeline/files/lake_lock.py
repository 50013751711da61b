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
from penstock.pipeline.files.lock_files import LockFile
from penstock.pipeline.spark.stopped import PipelineStopped

WAIT_S = 2.0  # between two looks at the lock of another run
BUSY = "another run is using these tables: {}; use --wait to wait for it"


class LakeLock:
    def __init__(self, file: LockFile, lock: RunLock, clock: Callable[[], int]) -> None:
        self._file = file
        self._lock = lock
        self._clock = clock
        self._unconfirmed: RunLock | None = None
        self._is_lost = False

    def holder(self) -> RunLock | None:
        """The lock of the run in progress."""
        return self._holder(self._file.read())

    def acquire(self) -> RunLock | None:
        """Acquire the lock; returns the lock of another run if that holds it."""
        now = self._clock()
        wanted = renew(msgspec.structs.replace(self._lock, taken_at=now), now=now)
        while True:
            text = self._file.read()
            if (holder := self._holder(text)) is not None:
                return holder
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
                f"{self._file.place} was not renewed in time, and another run may be in progress; "
                "run again",
                "lock_lost",
            )

    def renew(self) -> None:
        self._resolve()
        renewed = self._unconfirmed = renew(self._lock, now=self._clock())
        if self._file.swap(_encode(self._lock), _encode(renewed)):
            self._lock = renewed
        else:
            self._is_lost = True
        self._unconfirmed = None

    def release(self) -> None:
        self._resolve()
        self._file.swap(_encode(self._lock), None)

    def _resolve(self) -> None:
        """A renewal that failed may have been written all the same: then it is the lock."""
        written = self._unconfirmed
        if written is not None and self._file.read() == _encode(written):
            self._lock = written
        self._unconfirmed = None

    def _holder(self, text: str | None) -> RunLock | None:
        held = None if text is None else _decode(text, self._file.place)
        return None if held is None or is_expired(held, now=self._clock()) else held

    def _renew_until(self, stop: threading.Event, every_s: float) -> None:
        while not stop.wait(every_s):
            try:
                self.renew()
            except (OSError, LakeUnreachable, Py4JError):
                continue  # the next renewal may succeed; `check` notices if none does


def wait_until_free(
    look: Callable[[], RunLock | None],
    *,
    waits: bool,
    on_wait: Callable[[RunLock], None] = lambda holder: None,
    pause: Callable[[float], object] | None = None,
    busy: str = BUSY,
) -> None:
    """Wait until `look` finds no holder; raises PipelineStopped instead if `waits` is false.

    A brief holder is waited for in any case, and without a message.
    """
    pause = pause or threading.Event().wait
    is_noted = False
    while (holder := look()) is not None:
        if not (waits or holder.is_brief):
            raise PipelineStopped(busy.format(holder), "lake_busy")
        if not (is_noted or holder.is_brief):
            on_wait(holder)
            is_noted = True
        pause(WAIT_S)


@contextmanager
def acquired(
    lock: LakeLock,
    *,
    waits: bool,
    on_wait: Callable[[RunLock], None] = lambda holder: None,
    pause: Callable[[float], object] | None = None,
    busy: str = BUSY,
) -> Iterator[LakeLock]:
    """Hold the lock inside the block; raises PipelineStopped if another run has it."""
    wait_until_free(lock.acquire, waits=waits, on_wait=on_wait, pause=pause, busy=busy)
    with lock.renewing():
        yield lock


def _encode(lock: RunLock) -> str:
    return msgspec.json.encode(lock).decode()


def _decode(text: str, place: str) -> RunLock:
    try:
        return msgspec.json.decode(text, type=RunLock)
    except msgspec.MsgspecError as error:
        raise InvalidRequest(
            f"{place} is not a lock that this version can read; delete it if no run is in progress"
        ) from error
