"""Gathers claimed jobs of chunk handlers until a chunk is full or its first job has waited.

    claimed ──▶ gathering ──▶ a chunk ──▶ a slot
                    └──▶ given back: no slot was free in time, or the worker shuts down

In a queue ordered by group a chunk waits until the one before it has ended, and is given back if
that left jobs to be retried: they come first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice, takewhile

from penstock.domain.message.lease import Verb
from penstock.worker.batch import MAX_CHUNK, Batch
from penstock.worker.chunk import Chunk, ChunkKey, chunk_of, key_of
from penstock.worker.claimed_job import ClaimedJob, JobAct

NEVER = 2**63
_ENDS = (Verb.COMPLETE, Verb.CANCEL, Verb.BURY)


class ChunkGatherer:
    def __init__(self, slots: int, in_order: Collection[str] = ()) -> None:
        """`in_order`: queues whose chunks run one after another."""
        self._slots = slots
        self._in_order = frozenset(in_order)
        self._gathering: dict[ChunkKey, list[ClaimedJob]] = {}
        self._busy: set[ChunkKey] = set()  # an earlier chunk has not ended
        self._chunks = 0  # that wait for a slot or run
        self._jobs = 0  # gathering, or in one of these chunks
        self.next_at = NEVER
        self.appetite = 0  # how many jobs to claim at a time while only jobs for chunks come

    @property
    def spared(self) -> int:
        """How many of the worker's jobs need no slot of their own.

        As many chunks may gather as there are slots, beside those that run.
        """
        return self._jobs - self._chunks - max(len(self._gathering) - self._slots, 0)

    def sort(self, jobs: Sequence[ClaimedJob]) -> list[ClaimedJob]:
        """Gather jobs for chunks; returns what may start: the other jobs, and complete chunks."""
        started = [job for job in jobs if job.handler is None or job.handler.batch is None]
        self.appetite = 0
        if len(started) == len(jobs):
            return started
        most = 0 if started else MAX_CHUNK
        for job in jobs:
            if job.handler is not None and job.handler.batch is not None:
                started += self._add(job)
                self.appetite = min(max(self.appetite, job.handler.batch.max), most)
        return started

    def _add(self, job: ClaimedJob) -> list[Chunk]:
        key = key_of(job)
        self._gathering.setdefault(key, []).append(job)
        self._jobs += 1
        chunks = []
        while key not in self._busy and _is_full(self._gathering.get(key, ())):
            chunks.append(self._take(key))
        if key in self._gathering:
            self.next_at = min(self.next_at, self._due_at(key, self._gathering[key]))
        return chunks

    def due(self, now: int) -> list[Chunk]:
        """The chunks whose first job has waited long enough."""
        if now < self.next_at:
            return []
        due = [key for key, jobs in self._gathering.items() if self._due_at(key, jobs) <= now]
        chunks = [self._take(key) for key in due]
        self._plan()
        return chunks

    def end(self, chunk: Chunk, acts: Sequence[JobAct | None]) -> list[ClaimedJob]:
        """Forget an ended chunk; returns jobs behind it that must be given back."""
        self._chunks -= 1
        self._jobs -= len(chunk.members)
        key = key_of(chunk.members[0])
        self._busy.discard(key)
        behind: list[ClaimedJob] = []
        if chunk.queue in self._in_order and not all(a and a.verb in _ENDS for a in acts):
            behind = self._gathering.pop(key, [])
            self._jobs -= len(behind)
        self._plan()
        return behind

    def remove(self, job: ClaimedJob) -> bool:
        """Remove a job that is given back; False if it does not gather."""
        key = key_of(job)
        jobs = self._gathering.get(key, [])
        if job not in jobs:
            return False
        jobs.remove(job)
        self._jobs -= 1
        if not jobs:
            del self._gathering[key]
        return True

    def take_back(self) -> list[ClaimedJob]:
        taken = [job for jobs in self._gathering.values() for job in jobs]
        self._gathering.clear()
        self._jobs -= len(taken)
        self.next_at = NEVER
        return taken

    def flush(self) -> list[Chunk]:
        """All chunks that may run, full or not: no more jobs will come."""
        return [self._take(key) for key in list(self._gathering) if key not in self._busy]

    def _take(self, key: ChunkKey) -> Chunk:
        jobs = self._gathering.pop(key)
        count = _count(jobs)
        if count < len(jobs):
            self._gathering[key] = jobs[count:]
        if jobs[0].queue in self._in_order:
            self._busy.add(key)
        self._chunks += 1
        return chunk_of(jobs[:count])

    def _plan(self) -> None:
        dues = (self._due_at(key, jobs) for key, jobs in self._gathering.items())
        self.next_at = min(dues, default=NEVER)

    def _due_at(self, key: ChunkKey, jobs: Sequence[ClaimedJob]) -> int:
        if key in self._busy:
            return NEVER
        return 0 if _is_full(jobs) else jobs[0].taken_at + _batch(jobs[0]).wait_ms


def _batch(job: ClaimedJob) -> Batch:
    assert job.handler is not None
    assert job.handler.batch is not None
    return job.handler.batch


def _is_full(jobs: Sequence[ClaimedJob]) -> bool:
    """A job that has crashed a worker runs alone, and at once."""
    if not jobs:
        return False
    return bool(len(jobs) >= _batch(jobs[0]).max or jobs[0].crashes or jobs[-1].crashes)


def _count(jobs: Sequence[ClaimedJob]) -> int:
    """How many of these jobs are the next chunk."""
    if jobs[0].crashes:
        return 1
    healthy = takewhile(lambda job: not job.crashes, islice(jobs, _batch(jobs[0]).max))
    return sum(1 for _ in healthy)
