"""The jobs of a worker process, in memory that outlives the process.

The supervisor shares it with the process.  After a crash it shows which jobs were running and which
were waiting: a running one may be the cause.  An entry costs well below a microsecond per job.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
from collections.abc import Iterable
from enum import IntEnum

import msgspec

_HEAD = struct.Struct("<IIq64s")  # version, places, how far the clock is ahead, worker id
_ENTRY = struct.Struct("<B7xqq96s40s96s")  # state, started_at, deadline, receipt, id, kind
_TIMES = struct.Struct("<qq")
_HEAD_BYTES = 128
_ENTRY_BYTES = 256
_TIMES_AT = 8
_VERSION = 1
_RECEIPT_BYTES = 96


class EntryState(IntEnum):
    FREE = 0
    WAITING = 1  # waiting for a slot
    RUNNING = 2  # runs in the process itself, which it may crash
    SANDBOXED = 3
    ENDED = 4  # its handler has ended; the store does not know yet


class TableEntry(msgspec.Struct, frozen=True):
    state: EntryState
    started_at: int
    deadline: int  # 0: no deadline
    receipt: str
    id: str
    kind: str


class JobTable:
    """One process writes, one thread at a time per place; another reads after it has exited."""

    def __init__(self, fd: int, places: int) -> None:
        self.fd = fd
        self.places = places
        self._memory = mmap.mmap(fd, _HEAD_BYTES + places * _ENTRY_BYTES)
        self._offsets = [_HEAD_BYTES + i * _ENTRY_BYTES for i in range(places)]

    @classmethod
    def create(cls, places: int) -> JobTable:
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("penstock-worker")
        else:  # not available on every system
            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
        os.ftruncate(fd, _HEAD_BYTES + places * _ENTRY_BYTES)
        table = cls(fd, places)
        _HEAD.pack_into(table._memory, 0, _VERSION, places, 0, b"")
        return table

    @classmethod
    def inherited(cls, fd: int) -> JobTable:
        version, places, _, _ = _HEAD.unpack(os.pread(fd, _HEAD.size, 0))
        if version != _VERSION:
            raise ValueError(f"a table of version {version}")
        return cls(fd, places)

    def close(self) -> None:
        self._memory.close()
        os.close(self.fd)

    def set_worker(self, worker_id: str) -> None:
        """Record the worker's id."""
        self._set_head(self.ahead_ms, worker_id)

    def set_ahead(self, ahead_ms: int) -> None:
        """Record how far the instants here are ahead of the machine's steady clock."""
        self._set_head(ahead_ms, self.worker_id)

    @property
    def worker_id(self) -> str:
        name: bytes = _HEAD.unpack_from(self._memory, 0)[3]
        return name.rstrip(b"\0").decode(errors="replace")

    @property
    def ahead_ms(self) -> int:
        ahead: int = _HEAD.unpack_from(self._memory, 0)[2]
        return ahead

    def note(self, place: int, *, receipt: str, id: str, kind: str) -> None:
        if len(receipt) > _RECEIPT_BYTES:
            return  # a receipt of another server; its lease expires by itself
        _ENTRY.pack_into(
            self._memory,
            self._offsets[place],
            EntryState.WAITING,
            0,
            0,
            receipt.encode(),
            id.encode(),
            kind.encode(),
        )

    def begin(self, place: int, *, now: int, deadline: int | None, is_sandboxed: bool) -> None:
        offset = self._offsets[place]
        if self._memory[offset]:
            _TIMES.pack_into(self._memory, offset + _TIMES_AT, now, deadline or 0)
            self._memory[offset] = 3 if is_sandboxed else 2

    def end(self, place: int) -> None:
        offset = self._offsets[place]
        if self._memory[offset]:
            self._memory[offset] = 4

    def clear_all_but(self, suspects: Iterable[int]) -> None:
        """Mark the jobs in all other places as not the cause of the coming exit."""
        suspected = {self._offsets[place] for place in suspects}
        for offset in self._offsets:
            if self._memory[offset] == EntryState.RUNNING and offset not in suspected:
                self._memory[offset] = EntryState.WAITING

    def free(self, place: int) -> None:
        self._memory[self._offsets[place]] = 0

    def entries(self) -> list[TableEntry]:
        """The entries of all jobs."""
        return [self._entry(offset) for offset in self._offsets if self._memory[offset]]

    def overdue(self, now: int) -> list[TableEntry]:
        """Jobs in the process itself that should have been stopped by now."""
        return [
            entry
            for offset in self._offsets
            if self._memory[offset] == EntryState.RUNNING
            and 0 < (entry := self._entry(offset)).deadline <= now
        ]

    def clear(self) -> None:
        for offset in self._offsets:
            self._memory[offset] = 0

    def _set_head(self, ahead_ms: int, worker_id: str) -> None:
        name = worker_id.encode()[:64]
        _HEAD.pack_into(self._memory, 0, _VERSION, self.places, ahead_ms, name)

    def _entry(self, offset: int) -> TableEntry:
        state, started_at, deadline, receipt, id, kind = _ENTRY.unpack_from(self._memory, offset)
        return TableEntry(
            EntryState(state), started_at, deadline, _text(receipt), _text(id), _text(kind)
        )


def _text(field: bytes) -> str:
    return field.rstrip(b"\0").decode(errors="replace")
