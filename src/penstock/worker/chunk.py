"""A chunk: jobs of one kind that their handler gets in one call.

Slots, event loop and sandboxes run it as one job.  Each member keeps its own lease, time limit and
place in the job table, and ends with an act of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from penstock.worker.claimed_job import ClaimedJob, JobAct, RunsIn

ChunkKey = tuple[str, str, int | None, str | None]  # queue, kind, time limit, group or entity


class ChunkItem(Protocol):
    """One job of a chunk, as its handler has settled it."""

    @property
    def is_settled(self) -> bool: ...
    @property
    def outcome(self) -> object:
        """What the handler would have returned or raised for this job alone."""
        ...

    @property
    def is_completed(self) -> bool:
        """Whether the handler completed the job, in a transaction of its own."""
        ...


class Chunk(ClaimedJob, kw_only=True, eq=False):
    """Its own fields are those of its first member."""

    left: Sequence[ClaimedJob] = ()  # the members that had not been given back when it began
    items: Sequence[ChunkItem] = ()  # of those, in order
    acts: Sequence[JobAct] = ()  # of those, in order; empty: the chunk's act is that of each

    def begin(self, now: int) -> bool:
        self.left = [member for member in self.members if member.begin(now)]
        if not self.left:
            return False
        self.started_at = now
        self.deadline = self.left[0].deadline
        return True

    def take_slot(self) -> None:
        for member in self.members:
            member.take_slot()

    def extend(self, *, lease_ms: int | None = None, progress: str | None = None) -> None:
        """Extend the leases of all members that are still leased.  Raises LeaseLost."""
        running = [member for member in self.left if member.stop_reason is None]
        for member in running or self.left:
            member.extend(lease_ms=lease_ms, progress=progress)

    def ends(self, act: JobAct | None) -> list[tuple[ClaimedJob, JobAct | None]]:
        """Each member and its act; `act` is that of the chunk."""
        own = {member.receipt: its for member, its in zip(self.left, self.acts, strict=False)}
        return [(member, own.get(member.receipt) or _of(member, act)) for member in self.members]

    def member_asked(self) -> None:
        """Ask the handler to stop if all jobs were asked; the last is asked last."""
        if not self.is_stopping and all(m.is_stopping for m in reversed(self.members)):
            self.ask_to_stop()

    def member_stopped(self) -> None:
        """Stop the handler if the result of no job counts any more; the last is stopped last."""
        members = self.left or self.members
        reason = members[-1].stop_reason
        is_over = all(member.stop_reason is not None for member in reversed(members))
        if self.stop_reason is None and reason is not None and is_over:
            self.stop(reason)

    def member_forced(self) -> None:
        if self.stop_reason is None:
            self.member_stopped()
        else:
            self.force()


def key_of(job: ClaimedJob) -> ChunkKey:
    """Jobs with equal keys may share a chunk."""
    batch = job.handler and job.handler.batch
    by = None if not batch or batch.by is None else getattr(job, batch.by)
    return job.queue, job.kind or "", job.time_limit_ms, by


def chunk_of(members: Sequence[ClaimedJob]) -> Chunk:
    first = members[0]
    chunk = Chunk(
        **msgspec.structs.asdict(first.message) | {"trace": None},  # that of one member
        handler=first.handler,
        runs_in=first.runs_in,
        time_limit_ms=first.time_limit_ms,
        members=tuple(members),
    )
    for member in members:
        member.request_stop = chunk.member_asked
        member.stop_handler = chunk.member_stopped
        member.force_stop = chunk.member_forced
    return chunk


def sandboxed_chunk(members: Sequence[ClaimedJob]) -> Chunk:
    """In a sandbox: the members have begun in the worker."""
    chunk = chunk_of(members)
    chunk.runs_in = RunsIn.SANDBOX
    chunk.left = chunk.members
    return chunk


def _of(member: ClaimedJob, act: JobAct | None) -> JobAct | None:
    if act is None:
        return None
    return msgspec.structs.replace(act, receipt=member.receipt, queue=act.queue and member.queue)
