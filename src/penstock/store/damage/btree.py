"""Reads the rows of a table from its pages, skipping unreadable ones.

SQLite's file format: a page is an interior page or a leaf of one tree; rows that do not fit into a
leaf continue on overflow pages.  A table WITHOUT ROWID is stored like an index: each entry is a
record of all columns, those of the primary key first, and interior pages have entries as well.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Protocol

import msgspec

Value = None | int | float | str | bytes

_INDEX_INTERIOR, _TABLE_INTERIOR, _INDEX_LEAF, _TABLE_LEAF = 2, 5, 10, 13
_INTERIORS = (_INDEX_INTERIOR, _TABLE_INTERIOR)
_FIRST_PAGE_HEAD = 100
_INTEGER_BYTES = (0, 1, 2, 3, 4, 6, 8)
_REAL, _FALSE, _TRUE, _FIRST_BLOB = 7, 8, 9, 12


class Pages(Protocol):
    page_size: int
    usable: int
    count: int

    def page(self, no: int) -> bytes | None: ...


class TreeRow(msgspec.Struct, frozen=True):
    rowid: int | None  # None: a table WITHOUT ROWID
    values: list[Value]


class Gap(msgspec.Struct, frozen=True):
    """A page that cannot be read, and the row numbers that may have been on it."""

    page_no: int
    first: int | None = None  # None: unknown, or the table has no row numbers
    last: int | None = None


class TreePage(msgspec.Struct, frozen=True):
    """A page of a tree, and the row numbers that may be on it or below it."""

    page_no: int
    first: int | None = None
    last: int | None = None


class Tree:
    """One table or index; read it once."""

    def __init__(self, pages: Pages, root: int) -> None:
        self._pages = pages
        self._root = root
        self.seen: set[int] = set()
        self.gaps: list[Gap] = []

    def rows(self) -> Iterator[TreeRow]:
        yield from self._walk(self._root, None, None)

    def _walk(self, page_no: int, first: int | None, last: int | None) -> Iterator[TreeRow]:
        if page_no in self.seen:
            return
        self.seen.add(page_no)
        data = self._pages.page(page_no)
        try:
            if data is None:
                raise ValueError("cannot be read")
            kind, cells, rightmost = _cells(data, page_no, self._pages.usable)
        except (ValueError, IndexError, struct.error):
            self.gaps.append(Gap(page_no, first, last))
            return
        below = first
        for at in cells:
            if kind in _INTERIORS:
                (child,) = struct.unpack_from(">I", data, at)
                key = _varint(data, at + 4)[0] if kind == _TABLE_INTERIOR else None
                yield from self._walk(child, below, key)
                below = None if key is None else key + 1
            if kind != _TABLE_INTERIOR:
                row = self._row(data, at + (4 if kind == _INDEX_INTERIOR else 0), kind)
                if row is not None:
                    yield row
        if kind in _INTERIORS:
            yield from self._walk(rightmost, below, last)

    def _row(self, data: bytes, at: int, kind: int) -> TreeRow | None:
        rowid = None
        try:
            size, at = _varint(data, at)
            if kind == _TABLE_LEAF:
                rowid, at = _varint(data, at)
                rowid -= (rowid >> 63) << 64
            return TreeRow(rowid, _record(self._payload(data, at, size, kind)))
        except (ValueError, IndexError, struct.error):
            self.gaps.append(Gap(0, rowid, rowid))
            return None

    def _payload(self, data: bytes, at: int, size: int, kind: int) -> bytes:
        local = _local_bytes(size, self._pages.usable, is_table=kind == _TABLE_LEAF)
        found = data[at : at + local]
        if local == size:
            return found
        (following,) = struct.unpack_from(">I", data, at + local)
        while len(found) < size:
            page = self._pages.page(following)
            if page is None or following in self.seen:
                raise ValueError(f"overflow page {following} cannot be read")
            self.seen.add(following)
            (following,) = struct.unpack_from(">I", page)
            found += page[4 : min(self._pages.usable, 4 + size - len(found))]
        return found


def children(pages: Pages, page: TreePage) -> list[TreePage]:
    """The children of an interior page.  Raises ValueError."""
    data = pages.page(page.page_no)
    if data is None:
        return []
    kind, cells, rightmost = _cells(data, page.page_no, pages.usable)
    if kind not in _INTERIORS:
        return []
    found, below = [], page.first
    for at in cells:
        key = _varint(data, at + 4)[0] if kind == _TABLE_INTERIOR else None
        found.append(TreePage(struct.unpack_from(">I", data, at)[0], below, key))
        below = None if key is None else key + 1
    return [*found, TreePage(rightmost, below, page.last)]


def depth(pages: Pages, root: int) -> int:
    """The number of levels below the root; all leaves are on the same level."""
    levels, page = 0, TreePage(root)
    try:
        while following := children(pages, page):
            levels, page = (
                levels + 1,
                next((c for c in following if pages.page(c.page_no) is not None), following[0]),
            )
    except (ValueError, IndexError, struct.error):
        pass
    return levels


def is_table_leaf(data: bytes) -> bool:
    return data[0] == _TABLE_LEAF


def is_plausible(data: bytes, page_no: int, usable: int) -> bool:
    """Whether it can be a page of a tree, with decodable records."""
    try:
        kind, cells, _ = _cells(data, page_no, usable)
        for at in cells:
            at += 4 if kind in _INTERIORS else 0
            size, at = _varint(data, at)
            if kind == _TABLE_INTERIOR:
                continue
            if kind == _TABLE_LEAF:
                at = _varint(data, at)[1]
            if _local_bytes(size, usable, is_table=kind == _TABLE_LEAF) == size:
                if at + size > usable:
                    return False
                _record(data[at : at + size])
    except (ValueError, IndexError, struct.error):
        return False
    return True


def free_pages(pages: Pages) -> set[int] | None:
    """None: the list of free pages cannot be read."""
    first = pages.page(1)
    assert first is not None
    trunk, left = struct.unpack_from(">2I", first, 32)
    free: set[int] = set()
    while trunk and len(free) <= left:
        data = pages.page(trunk)
        if data is None or trunk in free:
            return None
        following, count = struct.unpack_from(">2I", data)
        free.add(trunk)
        free.update(struct.unpack_from(f">{min(count, pages.usable // 4 - 2)}I", data, 8))
        trunk = following
    return free


def _cells(data: bytes, page_no: int, usable: int) -> tuple[int, list[int], int]:
    """The kind of a page, where its cells begin, and its rightmost child; raises ValueError."""
    start = _FIRST_PAGE_HEAD if page_no == 1 else 0
    kind, _, count = struct.unpack_from(">BHH", data, start)
    if kind not in (*_INTERIORS, _INDEX_LEAF, _TABLE_LEAF):
        raise ValueError(f"page {page_no} is not part of a tree")
    (rightmost,) = struct.unpack_from(">I", data, start + 8) if kind in _INTERIORS else (0,)
    cells = struct.unpack_from(f">{count}H", data, start + (12 if kind in _INTERIORS else 8))
    if any(cell >= usable for cell in cells):
        raise ValueError(f"page {page_no} has cells outside of itself")
    return kind, list(cells), rightmost


def _local_bytes(size: int, usable: int, *, is_table: bool) -> int:
    """How many bytes of a record are stored in the tree itself."""
    most = usable - 35 if is_table else (usable - 12) * 64 // 255 - 23
    if size <= most:
        return size
    least = (usable - 12) * 32 // 255 - 23
    local = least + (size - least) % (usable - 4)
    return local if local <= most else least


def _record(data: bytes) -> list[Value]:
    head_bytes, at = _varint(data, 0)
    values: list[Value] = []
    body = head_bytes
    while at < head_bytes:
        kind, at = _varint(data, at)
        value, body = _value(data, body, kind)
        values.append(value)
    if body > len(data):
        raise ValueError("a record is longer than its cell")
    return values


def _value(data: bytes, at: int, kind: int) -> tuple[Value, int]:
    if kind == 0:
        return None, at
    if kind < _REAL:
        end = at + _INTEGER_BYTES[kind]
        return int.from_bytes(data[at:end], "big", signed=True), end
    if kind == _REAL:
        return float(struct.unpack_from(">d", data, at)[0]), at + 8
    if kind in (_FALSE, _TRUE):
        return kind - _FALSE, at
    if kind < _FIRST_BLOB:
        raise ValueError("a value of unknown type")
    end = at + (kind - _FIRST_BLOB) // 2
    return (data[at:end] if kind % 2 == 0 else data[at:end].decode()), end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(8):
        byte = data[at + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    return value << 8 | data[at + 8], at + 9
