"""Every page of a SQLite store in its newest readable version, read without SQLite.

A page comes from the last commit of the log that wrote it, or else from the database file.  Frames
of the log are verified one by one, also behind damage; pages of the file by their checksums, if it
has them.  One flipped bit in a frame or a page is corrected if the checksum confirms it; if several
bits are possible, the one that fits the page.  A page that cannot be corrected counts as missing,
because an older version of it would not match the others.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

import apsw

from penstock.domain.errors import StoreDamaged
from penstock.store.damage.btree import is_plausible
from penstock.store.damage.log_damage import find_log_end
from penstock.store.damage.log_frames import HEADER_BYTES, Frame, LogFile, guess_header
from penstock.store.damage.page_sums import (
    flipped_bits,
    is_one_bit_apart,
    sums_of,
    with_bit_flipped,
)
from penstock.store.queries import queries_of
from penstock.store.sqlite import checksums
from penstock.store.sqlite.file_header import close_beside, open_beside
from penstock.store.sqlite.log_sync import log_of

_MAGIC = b"SQLite format 3\0"


class PageImage:
    """The store must not be written to while it is open."""

    page_size: int
    count: int  # of pages
    has_sums: bool

    def __init__(self, path: Path) -> None:
        """Raises StoreDamaged if the first page cannot be read, OSError."""
        self._path = path
        self._is_header_corrected = False
        self._corrected: dict[int, Frame] = {}  # by number
        self._logged: dict[int, int] = {}  # by page: the number of its newest frame
        self._missing: set[int] = set()  # pages whose newest frame is damaged
        self._log: LogFile | None = None
        self.corrected_pages: set[int] = set()  # of the file: one bit was flipped
        self._unknown_frames = 0  # damaged, and even their page is uncertain
        self._file = open_beside(path)
        try:
            self._read_head()
            self._read_log()
            first = self.page(1)
        except BaseException:
            self.close()
            raise
        if first is None or not first.startswith(_MAGIC):
            self.close()
            raise StoreDamaged(f"the first page of {path} cannot be read: nothing can be salvaged")
        self.usable = self.page_size - first[20]
        if not self.count:
            (self.count,) = struct.unpack_from(">I", first, 28)

    def close(self) -> None:
        close_beside(self._file)
        if self._log is not None:
            self._log.close()

    def page(self, no: int) -> bytes | None:
        """None: the page does not exist or cannot be read."""
        if no in self._missing:
            return None
        if no in self._logged and self._log is not None:
            frame_no = self._logged[no]
            return (self._corrected.get(frame_no) or self._log.frame(frame_no)).page
        data = os.pread(self._file, self.page_size, (no - 1) * self.page_size)
        if len(data) < self.page_size:
            return None
        return self._verify_or_correct(no, data) if self.has_sums else data

    @property
    def corrected(self) -> list[str]:
        """Places where one flipped bit was corrected."""
        log = log_of(self._path).name
        header = [f"header of {log}"] if self._is_header_corrected else []
        frames = [f"frame {no} of {log}" for no in sorted(self._corrected)]
        return (
            header
            + frames
            + [f"page {no} of {self._path.name}" for no in sorted(self.corrected_pages)]
        )

    @property
    def lost_frames(self) -> int:
        """Damaged frames of the log whose pages were not written again later."""
        return len(self._missing) + self._unknown_frames

    def bad_pages(self) -> list[int]:
        """Unreadable pages; of a file without checksums only those damaged in the log."""
        if not self.has_sums:
            return sorted(self._missing)
        return [no for no in range(1, self.count + 1) if self.page(no) is None]

    def _verify_or_correct(self, no: int, data: bytes) -> bytes | None:
        if self._verify.execute(self._is_sound, {"page": data}).get:
            return data
        body, tail = data[:-8], data[-8:]
        stored = struct.unpack("<2I", tail)
        found = sums_of(body)
        if not is_one_bit_apart(found, stored):
            usable = self.page_size - checksums.RESERVED_BYTES
            bodies = [with_bit_flipped(body, bit) for bit in flipped_bits(body, found, stored)]
            if len(bodies) > 1:
                bodies = [one for one in bodies if is_plausible(one, no, usable)]
            if len(bodies) != 1:
                return None
            [body] = bodies
        self.corrected_pages.add(no)
        return body + struct.pack("<2I", *sums_of(body))

    def _read_head(self) -> None:
        """The page size is in the file, unless everything is still in the log."""
        head = os.pread(self._file, 100, 0)
        self.count = 0
        size = struct.unpack_from(">H", head, 16)[0] if len(head) == 100 else 0
        self.page_size = 65536 if size == 1 else size or 4096
        if self.page_size < 512 or self.page_size & (self.page_size - 1):
            self.page_size = 4096  # if these bytes are damaged: that of our stores
        self.has_sums = len(head) == 100 and head[20] == checksums.RESERVED_BYTES
        if len(head) == 100 and not self.has_sums and not head.startswith(_MAGIC):
            self.has_sums = True  # a damaged head: it may be corrected
        checksums.turn_on()
        self._verify = apsw.Connection(":memory:")
        self._is_sound = queries_of("sqlite").text("salvage.is_sound")

    def _read_log(self) -> None:
        log = log_of(self._path)
        if not log.exists() or log.stat().st_size <= HEADER_BYTES:
            return
        try:
            self._log = LogFile(log)
        except ValueError:
            self._log = LogFile(log, guess_header(log, self.page_size))
            self._unknown_frames += 1
        self.page_size = self._log.header.page_size
        if self._log.header.is_damaged and not self._unknown_frames:
            self._is_header_corrected = True
        self._take_frames(self._log)

    def _take_frames(self, log: LogFile) -> None:
        """Take frames of committed transactions, up to an ordinary end or across damage."""
        own = (head.no for head in log.heads(1) if head.salts == log.header.salts)
        last = max(own, default=0)
        written: list[tuple[Frame, bool]] = []  # by the transaction, and whether they can be read
        is_damaged = log.header.is_damaged
        seed = log.header.sums
        for no in range(1, last + 1):
            frame = log.frame(no)
            is_readable = log.is_sound(frame, seed)
            if not is_readable:
                if not is_damaged:
                    # One commit behind the end may be a transaction that was rolled back.
                    end = find_log_end(self._path, no - 1)
                    is_damaged = end is not None and (end.is_damage or end.commits > 1)
                if not is_damaged:
                    return
                better = self._only_one(log.corrections(frame, seed), frame)
                is_readable = better is not None
                frame = self._note(log, better or frame, is_readable)
            seed = frame.sums
            written.append((frame, is_readable))
            if frame.is_commit:
                self._commit(written)
                written = []

    def _only_one(self, corrections: list[Frame], frame: Frame) -> Frame | None:
        """Of several corrections, the one that is closest to the page's previous version."""
        if len(corrections) > 1:
            before = self.page(frame.page_no)
            distance = _distance(before, frame)
            corrections = [one for one in corrections if _distance(before, one) < distance]
        return corrections[0] if len(corrections) == 1 else None

    def _note(self, log: LogFile, frame: Frame, is_readable: bool) -> Frame:
        if is_readable:
            self._corrected[frame.no] = frame
        elif frame.salts != log.header.salts:
            self._unknown_frames += 1
        return frame

    def _commit(self, written: list[tuple[Frame, bool]]) -> None:
        for frame, is_readable in written:
            if is_readable:
                self._logged[frame.page_no] = frame.no
                self._missing.discard(frame.page_no)
            else:
                self._missing.add(frame.page_no)
        self.count = written[-1][0].commit_pages


def _distance(before: bytes | None, frame: Frame) -> int:
    """The number of bits in which the page of a frame differs from its version before."""
    if before is None:
        return 0
    return (int.from_bytes(before, "big") ^ int.from_bytes(frame.page, "big")).bit_count()
