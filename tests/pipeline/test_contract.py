"""The contract with readers: documented, and kept from version to version."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from penstock.pipeline.contract import Contract, ContractColumn, contract, document, page
from tests.edge.process import ROOT

RELEASED = sorted((ROOT / "tests/pipeline/released").glob("*/tables.json"))
HINT = "python -m penstock.pipeline.contract docs"


def broken(before: Contract, now: Contract) -> list[str]:
    """What readers of the earlier version would miss."""
    tables = {table.name: table for table in (*now.lake, *now.computed)}
    found = []
    for old in (*before.lake, *before.computed):
        new = tables.get(old.name)
        if new is None:
            found.append(f"{old.name} is missing")
            continue
        columns = {column.name: column for column in new.columns}
        for column in old.columns:
            kept = columns.pop(column.name, None)
            if kept is None or shape(kept) != shape(column):
                found.append(f"{old.name}.{column.name} was changed or removed")
        for column in columns.values():
            if not column.is_nullable or column.since <= old.version:
                found.append(f"{old.name}.{column.name} must be nullable, since a later version")
    return found


def shape(column: ContractColumn) -> tuple[str, bool, int]:
    return column.type, column.is_nullable, column.since


def test_the_page_and_the_document_are_those_of_the_code():
    assert (ROOT / "docs/tables.md").read_text(encoding="utf-8") == page(), HINT
    assert (ROOT / "docs/tables.json").read_text(encoding="utf-8") == document(), HINT


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: path.parent.name)
def test_readers_of_a_released_version_find_what_they_know(path):
    before = msgspec.json.decode(path.read_bytes(), type=Contract)

    assert len(before.lake) == 7
    assert broken(before, contract()) == []


def test_every_change_that_breaks_a_reader_is_found():
    now = contract()
    [history, *others] = now.lake
    first, *rest = history.columns

    def with_columns(*columns: ContractColumn) -> Contract:
        return replace(now, lake=(replace(history, columns=columns), *others))

    later = history.version + 1
    added = replace(first, name="added", is_nullable=True, since=later)
    assert broken(now, with_columns(first, *rest, added)) == []
    assert broken(now, replace(now, lake=tuple(others))) == ["history is missing"]
    for changed in (
        with_columns(*rest),
        with_columns(replace(first, type="string"), *rest),
        with_columns(first, *rest, replace(added, is_nullable=False)),
        with_columns(first, *rest, replace(added, since=1)),
    ):
        assert len(broken(now, changed)) == 1
