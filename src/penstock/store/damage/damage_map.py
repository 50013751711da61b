"""Finds the damaged pages of a SQLite store, and the tables and queues they belong to.

Interior pages list every page except the overflow pages of long rows, so the table of a page is
found without reading rows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from penstock.domain.store.damage import DamagedPage
from penstock.store.damage.btree import TreePage, Value, children, depth
from penstock.store.damage.page_image import PageImage
from penstock.store.damage.salvage_source import SalvageSource, SchemaEntry

_MAX_QUEUES = 20
_OF_MESSAGES = ("message", "body_")  # tables whose rows are numbered like messages
# Indexes whose entries begin with the queue number and end with the message number.
BY_QUEUE = ("message_to_claim", "message_to_fall_due", "message_in_group", "message_at_rest")


def damaged_pages(path: Path) -> list[DamagedPage]:
    """Raises StoreDamaged if not even the first page can be read, OSError."""
    with closing(PageImage(path)) as image:
        bad = dict.fromkeys(image.bad_pages(), False)
        bad |= dict.fromkeys(image.corrected_pages, True)
        if not bad:
            return []
        source = SalvageSource(image)
        found = _owners(source, set(bad))
        return [_page(source, no, bad[no], found.get(no)) for no in sorted(bad)]


def queue_numbers(source: SalvageSource) -> dict[int, int]:
    """The queue numbers of all messages that are in an index, by message number."""
    found: dict[int, int] = {}
    for index in BY_QUEUE:
        for values in source.index_rows(index):
            if isinstance(values[0], int) and isinstance(values[-1], int):
                found[values[-1]] = values[0]
    return found


def _owners(source: SalvageSource, wanted: set[int]) -> dict[int, tuple[SchemaEntry, TreePage]]:
    found: dict[int, tuple[SchemaEntry, TreePage]] = {}
    for entry in source.entries:
        for child in _pages_of(source, entry):
            if child.page_no in wanted:
                found[child.page_no] = (entry, child)
    return found


def _pages_of(source: SalvageSource, entry: SchemaEntry) -> Iterator[TreePage]:
    level = [TreePage(entry.root)]
    yield from level
    for _ in range(depth(source.image, entry.root)):
        level = [child for page in level for child in _children(source, page)]
        yield from level


def _children(source: SalvageSource, page: TreePage) -> list[TreePage]:
    try:
        return children(source.image, page)
    except (ValueError, IndexError, struct.error):
        return []


def _page(
    source: SalvageSource, no: int, is_correctable: bool, owner: tuple[SchemaEntry, TreePage] | None
) -> DamagedPage:
    if owner is None:
        return DamagedPage(no, is_correctable=is_correctable)
    entry, child = owner
    is_table = entry.kind == "table"
    queues: tuple[str, ...] = ()
    if is_table and entry.name.startswith(_OF_MESSAGES):
        queues = _queues(source, child)
    return DamagedPage(
        no,
        table=entry.table,
        index=None if is_table else entry.name,
        first=child.first,
        last=child.last,
        queues=queues,
        is_correctable=is_correctable,
    )


def _queues(source: SalvageSource, child: TreePage) -> tuple[str, ...]:
    """The queues of messages that may be on the page."""
    names: dict[Value, Value] = {}
    for row in source.rows("queue"):
        names[row.rowid] = source.tables["queue"].values(row).get("name")
    numbers = {
        queue_no
        for message_no, queue_no in queue_numbers(source).items()
        if (child.first is None or child.first <= message_no)
        and (child.last is None or message_no <= child.last)
    }
    return tuple(sorted(str(names.get(no, no)) for no in numbers)[:_MAX_QUEUES])
