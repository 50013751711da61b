"""What a worker is to do."""

from __future__ import annotations

import msgspec

from penstock.domain.limits import SECOND
from penstock.domain.worker import BEAT_MS
from penstock.worker.prefetch import MOST

LEAST_MEMORY_BYTES = 16 * 1024**2  # an interpreter alone takes more


class Order(msgspec.Struct, frozen=True, kw_only=True):
    queues: tuple[str, ...]
    slots: int = 10
    prefetch: int | None = None  # claimed beyond the free slots; None: as short jobs need it
    lease_ms: int = 30 * SECOND
    drain_ms: int = 30 * SECOND  # how long running jobs may take at the end
    beat_ms: int = BEAT_MS
    is_burst: bool = False  # end when nothing is held and nothing can be claimed
    max_jobs: int | None = None  # finished by one process, which is then replaced
    max_memory_bytes: int | None = None  # resident after a job; above it a process is replaced

    @property
    def places(self) -> int:
        """So many jobs are held at most, and as many of which the store is just being told."""
        return 2 * (self.slots + (MOST if self.prefetch is None else self.prefetch))
