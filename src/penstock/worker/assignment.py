"""What a worker does: its queues, its slots, its limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import msgspec

from penstock.domain.duration import Duration, as_ms
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import SECOND
from penstock.domain.queue.queue import check_name
from penstock.domain.worker import BEAT_MS

_WINDOW_MS = 20
_AHEAD_MS = 50
MAX_PREFETCH = 500
MIN_MEMORY_BYTES = 16 * 1024**2  # a bare interpreter takes more than this
_SHORTEST_LEASE_MS = 1_000


class Prefetch:
    """How many jobs to claim ahead by default: as many as finish within 50 ms.

    Short jobs are claimed by the hundred, so that many share a commit; long ones are left to other
    workers that could run them at once.
    """

    def __init__(self) -> None:
        self._since: int | None = None
        self._done = 0
        self.ahead = 0

    def note(self, done: int, *, now: int) -> None:
        if self._since is None:
            self._since = now
        self._done += done
        passed = now - self._since
        if passed >= _WINDOW_MS:
            self.ahead = min(self._done * _AHEAD_MS // passed, MAX_PREFETCH)
            self._since, self._done = now, 0


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    queues: tuple[str, ...]
    slots: int = 10
    prefetch: int | None = None  # claimed beyond the free slots; None: adapts to job length
    lease_ms: int = 30 * SECOND
    drain_ms: int = 30 * SECOND  # how long running jobs may take at shutdown
    beat_ms: int = BEAT_MS
    is_burst: bool = False  # exit when no job is left and none can be claimed
    max_jobs: int | None = None  # jobs after which a process is replaced
    max_memory_bytes: int | None = None  # resident after a job; a process above it is replaced

    @property
    def places(self) -> int:
        """Table entries: for the most jobs a process can have, and as many ends being reported.

        Without prefetch a process still claims more jobs than it has slots, for chunks.
        """
        return 2 * (self.slots + max(MAX_PREFETCH, self.prefetch or 0))

    def with_queues(self, known: Sequence[str]) -> Assignment:
        """Return a checked copy, with these queues if it names none.  Raises InvalidRequest."""
        queues = self.queues or tuple(known)
        if not queues:
            raise InvalidRequest("the application has no jobs, and no queues were named")
        for name in queues:
            check_name(name)
        if self.slots < 1 or (self.prefetch or 0) < 0 or self.drain_ms < 0:
            raise InvalidRequest("slots must be 1 or more, prefetch and drain_for 0 or more")
        if self.lease_ms < _SHORTEST_LEASE_MS:
            raise InvalidRequest(f"the lease of a worker is at least {_SHORTEST_LEASE_MS} ms")
        if self.max_jobs is not None and self.max_jobs < 1:
            raise InvalidRequest(f"max_jobs must be 1 or more, not {self.max_jobs}")
        if self.max_memory_bytes is not None and self.max_memory_bytes < MIN_MEMORY_BYTES:
            raise InvalidRequest(
                f"max_memory must be {MIN_MEMORY_BYTES} bytes or more, not {self.max_memory_bytes}"
            )
        return msgspec.structs.replace(self, queues=queues)


class WorkerOptions(TypedDict, total=False):
    """The keyword arguments of `Penstock.worker`."""

    queues: Sequence[str]  # default: the application's `worker_queues`
    slots: int
    prefetch: int | None
    lease: Duration
    drain_for: Duration
    name: str | None  # the name in the registry
    is_registered: bool
    burst: bool  # exit when there is nothing to do


def assignment_of(options: WorkerOptions) -> Assignment:
    given = Assignment(queues=tuple(options.get("queues", ())), prefetch=options.get("prefetch"))
    return msgspec.structs.replace(
        given,
        slots=options.get("slots", given.slots),
        lease_ms=as_ms("lease", options.get("lease", "30s")),
        drain_ms=as_ms("drain_for", options.get("drain_for", "30s")),
        is_burst=options.get("burst", False),
    )
