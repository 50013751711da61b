"""A board that all processes of a measurement write on: when each job was sent and when it ran."""

from __future__ import annotations

import mmap
import os
import struct
import time
from pathlib import Path

VARIABLE = "BENCH_BOARD"
_INSTANT = struct.Struct("<q")
_COLUMNS = 2  # sent, ran


class Board:
    """A file of two columns; times are nanoseconds of the clock that all processes share."""

    def __init__(self, path: Path) -> None:
        self._rows = path.stat().st_size // (_INSTANT.size * _COLUMNS)
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)

    @classmethod
    def make(cls, path: Path, rows: int) -> Board:
        path.write_bytes(bytes(rows * _COLUMNS * _INSTANT.size))
        return cls(path)

    def sent(self, row: int) -> None:
        self._write(row, 0)

    def ran(self, row: int) -> None:
        self._write(row, 1)

    def ran_at(self) -> list[int]:
        """Of those that did, in the order of their numbers."""
        return [ran for _, ran in self._all() if ran]

    def waits(self) -> list[float]:
        """Seconds from the call that enqueues to the handler."""
        return [(ran - sent) / 1e9 for sent, ran in self._all() if sent and ran]

    def close(self) -> None:
        self._map.close()

    def _all(self) -> list[tuple[int, int]]:
        instants = [one for (one,) in _INSTANT.iter_unpack(self._map[:])]
        return list(zip(instants[::2], instants[1::2], strict=True))

    def _write(self, row: int, column: int) -> None:
        place = (row * _COLUMNS + column) * _INSTANT.size
        _INSTANT.pack_into(self._map, place, time.monotonic_ns())


_mine: Board | None = None


def ran(row: int) -> None:
    """What every job does, and nothing else."""
    global _mine
    if _mine is None:
        _mine = Board(Path(os.environ[VARIABLE]))
    _mine.ran(row)
