"""Reads SQLite's write-ahead log as a file, and verifies each of its frames.

Each frame stores checksums of itself and all frames before it.  SQLite stops at the first frame
whose sums are wrong and ignores the rest.  But a frame's sums are computed from its content and the
sums stored in the frame before it, so frames behind a damaged one can be verified, too.

    header  magic, version, page size, sequence, salts (8 bytes), sums of these
    frame   page number, size of the database after a commit (0: no commit), salts, sums, page

Frames whose salts differ from the header's are left over from an earlier use of the file.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec

from penstock.store.damage.page_sums import (
    Sums,
    flipped_bits,
    is_one_bit_apart,
    sums_of,
    with_bit_flipped,
)

HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
_MAGIC = 0x377F0682  # with the lowest bit set the sums are of big-endian words
_SUMMED = 24  # bytes of the header that its sums cover
_PAGE_SIZES = [1 << power for power in range(9, 17)]


class Frame(msgspec.Struct, frozen=True):
    no: int  # from 1
    page_no: int
    commit_pages: int  # 0: not the last frame of a commit
    salts: bytes
    sums: Sums
    summed: bytes  # the first eight bytes of its header, and the page

    @property
    def page(self) -> bytes:
        return self.summed[8:]

    @property
    def is_commit(self) -> bool:
        return self.commit_pages > 0


class LogHeader(msgspec.Struct, frozen=True):
    page_size: int
    salts: bytes
    sums: Sums
    is_big_endian: bool
    is_damaged: bool = False  # one bit of it was flipped, and is corrected here


class LogFile:
    """Open for reading; SQLite has no locks on this file, so closing it does no harm."""

    def __init__(self, path: Path, header: LogHeader | None = None) -> None:
        """Raises ValueError if no header is given and that of the file cannot be read."""
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.header = header or read_header(os.pread(self._file, HEADER_BYTES, 0))
            self._step = FRAME_HEADER_BYTES + self.header.page_size
            size = os.fstat(self._file).st_size
        except BaseException:
            os.close(self._file)
            raise
        self.count = max(0, (size - HEADER_BYTES) // self._step)  # of whole frames

    def close(self) -> None:
        os.close(self._file)

    def offset(self, no: int) -> int:
        return HEADER_BYTES + (no - 1) * self._step

    def frame(self, no: int) -> Frame:
        data = os.pread(self._file, self._step, self.offset(no))
        return _frame(no, data[:FRAME_HEADER_BYTES], data[FRAME_HEADER_BYTES:])

    def heads(self, first: int) -> Iterator[Frame]:
        """Frames without their pages, which is fast."""
        for no in range(first, self.count + 1):
            yield _frame(no, os.pread(self._file, FRAME_HEADER_BYTES, self.offset(no)), b"")

    def seed(self, no: int) -> Sums:
        """The stored sums of what precedes a frame."""
        return self.header.sums if no == 1 else self.frame(no - 1).sums

    def is_sound(self, frame: Frame, seed: Sums) -> bool:
        return frame.salts == self.header.salts and self.sums(frame, seed) == frame.sums

    def sums(self, frame: Frame, seed: Sums) -> Sums:
        return sums_of(frame.summed, seed, is_big_endian=self.header.is_big_endian)

    def corrections(self, frame: Frame, seed: Sums) -> list[Frame]:
        """What the frame may have been before one of its bits flipped."""
        is_big = self.header.is_big_endian
        found = sums_of(frame.summed, seed, is_big_endian=is_big)
        if found == frame.sums or is_one_bit_apart(found, frame.sums):  # in its salts or its sums
            return [msgspec.structs.replace(frame, salts=self.header.salts, sums=found)]
        if frame.salts != self.header.salts:
            return []
        bits = flipped_bits(frame.summed, found, frame.sums, is_big_endian=is_big)
        return [_with_content(frame, with_bit_flipped(frame.summed, bit)) for bit in bits]


def read_header(data: bytes) -> LogHeader:
    """Raises ValueError if more than one bit of it is wrong."""
    header = _header(data)
    if header is not None:
        return header
    for bit in range(len(data) * 8):
        header = _header(with_bit_flipped(data, bit))
        if header is not None:
            return msgspec.structs.replace(header, is_damaged=True)
    raise ValueError("the header of the log cannot be read")


def guess_header(path: Path, page_size: int) -> LogHeader:
    """Derived from the first frame of a log whose header is lost; its seed is unknown."""
    with path.open("rb") as file:
        file.seek(HEADER_BYTES)
        first = file.read(FRAME_HEADER_BYTES)
    return LogHeader(page_size, first[8:16], (0, 0), is_big_endian=False, is_damaged=True)


def _header(data: bytes) -> LogHeader | None:
    if len(data) < HEADER_BYTES:
        return None
    magic, _, page_size = struct.unpack_from(">3I", data)
    if magic & ~1 != _MAGIC or page_size not in _PAGE_SIZES:
        return None
    is_big = bool(magic & 1)
    sums = sums_of(data[:_SUMMED], is_big_endian=is_big)
    if sums != struct.unpack_from(">2I", data, _SUMMED):
        return None
    return LogHeader(page_size, data[16:24], sums, is_big)


def _with_content(frame: Frame, summed: bytes) -> Frame:
    page_no, commit_pages = struct.unpack_from(">2I", summed)
    return msgspec.structs.replace(frame, page_no=page_no, commit_pages=commit_pages, summed=summed)


def _frame(no: int, head: bytes, page: bytes) -> Frame:
    page_no, commit_pages, *sums = struct.unpack(">2I8x2I", head)
    return Frame(no, page_no, commit_pages, head[8:16], (sums[0], sums[1]), head[:8] + page)
