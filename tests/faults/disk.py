"""A disk with a volatile cache: what would be left of each file if the power failed now.

Writes go straight to the real files, because that is where SQLite's shared memory and other readers
expect them. Beside them this remembers, per 512-byte sector, what the disk would hold instead:

    durable  sector -> its content on the platter, where that differs from the file
    dirty    sector -> number of the last unsynced write; a successful sync makes it durable
    cut      sectors that an unsynced truncation took

A failed sync leaves its sectors out of `dirty` but in `durable`: the kernel marks such pages clean,
so no later sync writes them, unless they are written again.  A truncation is one entry in the file
system's own journal: a power cut undoes all of it or nothing, and no failed sync drops it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

SECTOR = 512
PAGE_SECTORS = 8


class Loss(StrEnum):
    """Which unsynced writes a power cut loses."""

    EVERYTHING = "everything"
    RANDOM_SECTORS = "random sectors"  # torn pages
    RANDOM_PAGES = "random pages"  # reordered writes
    ALL_BUT_A_PREFIX = "all but a prefix"


class FileOnDisk:
    """One file; the descriptor stays open, as closing it would drop SQLite's locks."""

    def __init__(self, path: Path, *, is_new: bool) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDWR)
        self.durable: dict[int, bytes] = {}
        self.dirty: dict[int, int] = {}
        self.cut: set[int] = set()
        self._cut_size = self._cut_number = 0
        self.durable_size = 0 if is_new else self.size()
        self.was_synced = not is_new
        self.failed_syncs = 0
        self._writes = 0

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def before_write(self, offset: int, length: int) -> None:
        """Remember the durable content of the sectors about to change."""
        self._writes += 1
        for sector in range(offset // SECTOR, (offset + length - 1) // SECTOR + 1):
            self._keep(sector)
            # Moved to the end, so that the order of `dirty` is the order of the last writes.
            self.dirty.pop(sector, None)
            self.dirty[sector] = self._writes

    def before_truncate(self, size: int) -> None:
        self._cut_size = min(size, self._cut_size) if self.cut else size
        self._writes += 1
        self._cut_number = self._writes
        for sector in range(size // SECTOR, -(-self.size() // SECTOR)):
            self._keep(sector)
            self.dirty.pop(sector, None)
            self.cut.add(sector)

    def synced(self) -> None:
        for sector in self.dirty:
            self.durable.pop(sector, None)
        for sector in self.cut - self.dirty.keys():
            self.durable[sector] = b""  # written again since, and dropped by a failed sync
        self.durable_size = self.size()
        for sector in [each for each in self.durable if each * SECTOR >= self.durable_size]:
            del self.durable[sector]
        self.dirty.clear()
        self.cut.clear()
        self.was_synced = True

    def sync_failed(self, reached: Callable[[], bool] = lambda: False) -> None:
        """Some sectors may have reached the platter before or after those that did not."""
        self.failed_syncs += 1
        for sector in self.dirty:
            if reached():
                self.durable.pop(sector, None)
        self.dirty.clear()

    def lose(self, loss: Loss, dice: random.Random) -> None:
        """Make the file what a power cut would leave of it."""
        survives = _survivors(loss, self.dirty, dice)
        left = {sector for sector in self.dirty if survives(sector)}
        is_cut = self._is_cut(loss, left, dice)
        kept_until = min(self.durable_size, self._cut_size) if is_cut else self.durable_size
        for sector in left:
            kept_until = max(kept_until, min((sector + 1) * SECTOR, self.size()))
        for sector, content in self.durable.items():
            if sector not in left:
                old = b"" if is_cut and sector in self.cut else content
                os.pwrite(self.fd, old.ljust(SECTOR, b"\0"), sector * SECTOR)
        os.ftruncate(self.fd, kept_until)

    def _is_cut(self, loss: Loss, left: set[int], dice: random.Random) -> bool:
        """Whether the truncation survives, all of it."""
        if not self.cut or loss is Loss.EVERYTHING:
            return False
        if loss is Loss.ALL_BUT_A_PREFIX and left:
            return max(self.dirty[sector] for sector in left) > self._cut_number
        return dice.random() < 0.5

    def _keep(self, sector: int) -> None:
        if sector not in self.durable:
            beyond = sector * SECTOR >= self.size()
            self.durable[sector] = b"" if beyond else os.pread(self.fd, SECTOR, sector * SECTOR)


def _survivors(loss: Loss, dirty: dict[int, int], dice: random.Random) -> Callable[[int], bool]:
    if loss is Loss.EVERYTHING or not dirty:
        return lambda sector: False
    if loss is Loss.ALL_BUT_A_PREFIX:
        last = dice.choice(list(dirty.values()))
        return lambda sector: dirty[sector] < last
    chance = dice.choice((0.1, 0.5, 0.9))
    unit = PAGE_SECTORS if loss is Loss.RANDOM_PAGES else 1
    kept = {part for part in {sector // unit for sector in dirty} if dice.random() < chance}
    return lambda sector: sector // unit in kept
