"""What a worker process holds, noted where it outlives the process.

Memory that the supervisor shares with a child.  When the child is dead it tells what ran there, and
what was only held: the first may be the reason, the second is innocent.  Noting costs well below a
microsecond for each job.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
from collections.abc import Iterable
from enum import IntEnum

import msgspec

_HEAD = struct.Struct("<IIq64s")  # version, places, how far the clock is ahead, worker's id
_ENTRY = struct.Struct("<B7xqq96s40s96s")  # state, started_at, deadline, receipt, id, kind
_TIMES = struct.Struct("<qq")
_HEAD_BYTES = 128
_ENTRY_BYTES = 256
_TIMES_AT = 8
_VERSION = 1
_RECEIPT_BYTES = 96


class Noted(IntEnum):
    FREE = 0
    HELD = 1  # in line
    RUNNING = 2  # in the process itself: it can be the end of it
    APART = 3  # in a sandbox
    ENDED = 4  # its handler is done, the store does not know yet


class Entry(msgspec.Struct, frozen=True):
    state: Noted
    started_at: int
    deadline: int  # 0: none
    receipt: str
    id: str
    kind: str


class Table:
    """One process writes, each place by one thread at a time; another reads when it is dead."""

    def __init__(self, fd: int, places: int) -> None:
        self.fd = fd
        self.places = places
        self._memory = mmap.mmap(fd, _HEAD_BYTES + places * _ENTRY_BYTES)
        self._offsets = [_HEAD_BYTES + i * _ENTRY_BYTES for i in range(places)]

    @classmethod
    def create(cls, places: int) -> Table:
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("penstock-worker")
        else:  # not on every system
            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
        os.ftruncate(fd, _HEAD_BYTES + places * _ENTRY_BYTES)
        table = cls(fd, places)
        _HEAD.pack_into(table._memory, 0, _VERSION, places, 0, b"")
        return table

    @classmethod
    def inherited(cls, fd: int) -> Table:
        version, places, _, _ = _HEAD.unpack(os.pread(fd, _HEAD.size, 0))
        if version != _VERSION:
            raise ValueError(f"a table of version {version}")
        return cls(fd, places)

    def close(self) -> None:
        self._memory.close()
        os.close(self.fd)

    def sign(self, worker_id: str) -> None:
        """Whose it is."""
        self._set_head(self.ahead_ms, worker_id)

    def set_ahead(self, ahead_ms: int) -> None:
        """By how much the instants here are ahead of the machine's steady clock."""
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
            return  # a foreign server's; its lease runs out by itself
        _ENTRY.pack_into(
            self._memory,
            self._offsets[place],
            Noted.HELD,
            0,
            0,
            receipt.encode(),
            id.encode(),
            kind.encode(),
        )

    def begin(self, place: int, *, now: int, deadline: int | None, is_apart: bool) -> None:
        offset = self._offsets[place]
        if self._memory[offset]:
            _TIMES.pack_into(self._memory, offset + _TIMES_AT, now, deadline or 0)
            self._memory[offset] = 3 if is_apart else 2

    def end(self, place: int) -> None:
        offset = self._offsets[place]
        if self._memory[offset]:
            self._memory[offset] = 4

    def acquit_all_but(self, suspects: Iterable[int]) -> None:
        """What runs elsewhere than in these places is not the reason for the end to come."""
        guilty = {self._offsets[place] for place in suspects}
        for offset in self._offsets:
            if self._memory[offset] == Noted.RUNNING and offset not in guilty:
                self._memory[offset] = Noted.HELD

    def free(self, place: int) -> None:
        self._memory[self._offsets[place]] = 0

    def entries(self) -> list[Entry]:
        """All that is noted."""
        return [self._entry(offset) for offset in self._offsets if self._memory[offset]]

    def overdue(self, now: int) -> list[Entry]:
        """Those in the process itself that should have been stopped by now."""
        return [
            entry
            for offset in self._offsets
            if self._memory[offset] == Noted.RUNNING
            and 0 < (entry := self._entry(offset)).deadline <= now
        ]

    def clear(self) -> None:
        for offset in self._offsets:
            self._memory[offset] = 0

    def _set_head(self, ahead_ms: int, worker_id: str) -> None:
        name = worker_id.encode()[:64]
        _HEAD.pack_into(self._memory, 0, _VERSION, self.places, ahead_ms, name)

    def _entry(self, offset: int) -> Entry:
        state, started_at, deadline, receipt, id, kind = _ENTRY.unpack_from(self._memory, offset)
        return Entry(Noted(state), started_at, deadline, _text(receipt), _text(id), _text(kind))


def _text(field: bytes) -> str:
    return field.rstrip(b"\0").decode(errors="replace")
