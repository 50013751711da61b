"""The tables of a damaged store, as far as its pages are readable."""

from __future__ import annotations

from collections.abc import Iterator

import apsw
import msgspec

from penstock.store.damage.btree import Gap, Tree, TreeRow, Value, free_pages, is_table_leaf
from penstock.store.damage.page_image import PageImage
from penstock.store.queries import queries_of

_SCHEMA_ROOT = 1
_WITHOUT_ROWID = "WITHOUT ROWID"
_TYPES: dict[str, type] = {"INTEGER": int, "TEXT": str}


class SchemaEntry(msgspec.Struct, frozen=True, array_like=True):
    """One row of SQLite's own list of tables and indexes."""

    kind: str
    name: str
    table: str
    root: int
    text: str | None  # None: an index that SQLite created itself


class StoredColumn(msgspec.Struct, frozen=True):
    name: str
    type: str
    is_needed: bool
    key_place: int  # in the primary key, from 1; 0: not part of it


class StoredTable(msgspec.Struct, frozen=True):
    name: str
    stored: list[StoredColumn]  # in the order of the records
    number_place: int  # index of the column with the row number; -1 without one

    def values(self, row: TreeRow) -> dict[str, Value]:
        """Without columns that were added later and are not in the record."""
        values = dict(zip((column.name for column in self.stored), row.values, strict=False))
        if self.number_place >= 0 and row.rowid is not None:
            values[self.stored[self.number_place].name] = row.rowid
        return values

    def fits(self, row: TreeRow) -> bool:
        """Whether a row of unknown origin may belong to this table."""
        if row.rowid is None or not 0 < len(row.values) <= len(self.stored):
            return False
        for place, (column, value) in enumerate(zip(self.stored, row.values, strict=False)):
            if place == self.number_place:
                if value is not None:
                    return False
            elif value is None:
                if column.is_needed:
                    return False
            elif not isinstance(value, _TYPES.get(column.type, object)):
                return False
        return True


class SalvageSource:
    def __init__(self, image: PageImage) -> None:
        self.image = image
        schema = Tree(image, _SCHEMA_ROOT)
        self.entries = [entry for row in schema.rows() if (entry := _entry(row))]
        self.seen = schema.seen
        self.schema_gaps = schema.gaps
        self.tables = {e.name: table for e in self.entries if (table := _table(e))}
        self.gaps: dict[str, list[Gap]] = {}  # by table or index
        self._strays: dict[str, list[TreeRow]] = {}

    def walk_all(self) -> None:
        """Find every gap, and the rows that are not reachable from any root.

        Call it first: stray pages are known only after all trees have been walked.
        """
        for entry in self.entries:
            for _ in self.rows(entry.name):
                pass
        free = free_pages(self.image)
        torn = [self.tables[name] for name in self.gaps if name in self.tables]
        if free is None or not torn:
            return  # free pages would bring back deleted rows
        for no in range(1, self.image.count + 1):
            data = None if no in self.seen or no in free else self.image.page(no)
            if data is not None and is_table_leaf(data):
                self._keep_strays(no, torn)

    def rows(self, name: str) -> Iterator[TreeRow]:
        [root] = [entry.root for entry in self.entries if entry.name == name]
        if not root:
            return
        tree = Tree(self.image, root)
        yield from tree.rows()
        self.seen |= tree.seen
        if tree.gaps:
            self.gaps[name] = tree.gaps
        yield from self._strays.get(name, ())

    def index_rows(self, name: str) -> Iterator[list[Value]]:
        if any(entry.name == name for entry in self.entries):
            yield from (row.values for row in self.rows(name))

    def _keep_strays(self, page_no: int, torn: list[StoredTable]) -> None:
        tree = Tree(self.image, page_no)
        rows = list(tree.rows())
        fitting = [
            t for t in torn if rows and all(t.fits(row) and self._misses(t, row) for row in rows)
        ]
        if len(fitting) == 1:
            self._strays.setdefault(fitting[0].name, []).extend(rows)
            self.seen |= tree.seen

    def _misses(self, table: StoredTable, row: TreeRow) -> bool:
        assert row.rowid is not None
        return any(
            (gap.first is None or gap.first <= row.rowid)
            and (gap.last is None or row.rowid <= gap.last)
            for gap in self.gaps[table.name]
        )


def _entry(row: TreeRow) -> SchemaEntry | None:
    try:
        return msgspec.convert(row.values, SchemaEntry)
    except msgspec.ValidationError:
        return None


def _table(entry: SchemaEntry) -> StoredTable | None:
    """Parse the definition with SQLite itself, in memory."""
    if entry.kind != "table" or entry.text is None:
        return None
    if entry.name == "sqlite_sequence":
        return StoredTable(
            entry.name, [StoredColumn("name", "", False, 0), StoredColumn("seq", "", False, 0)], -1
        )
    if entry.name.startswith("sqlite_"):
        return None
    db = apsw.Connection(":memory:")
    try:
        db.execute(entry.text)
        text = queries_of("sqlite").text("salvage.columns")
        rows = db.execute(text, {"table_name": entry.name}).fetchall()
    except apsw.Error:  # damage in a file without checksums
        return None
    finally:
        db.close()
    columns = [
        StoredColumn(str(row[0]), str(row[1]), bool(row[2]), int(str(row[3]))) for row in rows
    ]
    if _WITHOUT_ROWID in entry.text.upper():
        key = sorted((c for c in columns if c.key_place), key=lambda c: c.key_place)
        return StoredTable(entry.name, [*key, *(c for c in columns if not c.key_place)], -1)
    numbers = [i for i, c in enumerate(columns) if c.key_place and c.type == "INTEGER"]
    return StoredTable(entry.name, columns, numbers[0] if len(numbers) == 1 else -1)
