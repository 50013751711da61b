"""Everything readable is in the new store, and what is lost is listed."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from penstock.domain.errors import InvalidRequest, StoreDamaged, StoreRefused, StoreUnavailable
from penstock.domain.store.finding import Grade
from penstock.store.damage.damage_map import damaged_pages
from penstock.store.damage.salvage import SalvageReport, salvage
from penstock.store.maintenance.sqlite_checks import examine
from penstock.store.sqlite.shared_connection import is_plain
from penstock.store.store import open_sqlite
from tests.clocks import ManualClock
from tests.store.damage.stores import (
    COUNT,
    DONE,
    FILE,
    PAGE,
    QUEUES,
    ask,
    contents,
    copy_of,
    flip,
    live_ids,
    log_of,
    overwrite,
    page_of,
)
from tests.store.driver import StoreDriver


def salvaged(damaged: Path, target: Path) -> SalvageReport:
    before = contents(damaged.parent)
    result = salvage(damaged, target / FILE, now=1, progress=lambda done, total: None)
    assert contents(damaged.parent) == before, "the damaged store was written to"
    return result


def assert_is_sound(path: Path) -> None:
    """It opens, and its counters, groups and limits agree with what is there."""
    open_sqlite(path, checksums=not is_plain(path)).close()
    failed = [finding for finding in examine(path, now=2**60) if finding.grade is Grade.FAIL]
    assert not failed


def rows(path: Path) -> dict[str, list[tuple]]:
    """All rows except those that a new store creates itself."""
    own = ("migration", "sqlite_sequence")
    tables = ask(path, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
    return {
        name: sorted(ask(path, f"SELECT * FROM {name}"), key=repr)
        for (name,) in tables
        if name not in own
    }


def test_a_sound_store_is_copied_row_by_row(crashed: Path, tmp_path: Path) -> None:
    result = salvaged(copy_of(crashed, tmp_path / "sound"), tmp_path / "new")

    assert result.is_complete
    assert not result.repaired
    assert rows(tmp_path / "new" / FILE) == rows(copy_of(crashed, tmp_path / "again"))
    assert is_plain(tmp_path / "new" / FILE) == is_plain(crashed)
    assert_is_sound(tmp_path / "new" / FILE)


def test_a_new_store_gets_its_name_only_once_it_is_synced(
    crashed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "new" / FILE

    def failing(handle: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)

    with pytest.raises(StoreUnavailable, match="cannot salvage"):
        salvage(crashed, target, now=1, progress=lambda done, total: None)
    assert not list(target.parent.iterdir())


def test_a_flipped_bit_in_the_log_costs_nothing(crashed: Path, tmp_path: Path) -> None:
    dice = random.Random(4)
    everything = live_ids(crashed, tmp_path / "whole")
    for number in range(4):
        damaged = copy_of(crashed, tmp_path / f"damaged-{number}")
        size = log_of(damaged).stat().st_size
        flip(log_of(damaged), 20 if number == 0 else dice.randrange(size), dice.randrange(8))

        result = salvaged(damaged, tmp_path / f"new-{number}")

        new = tmp_path / f"new-{number}" / FILE
        found = {found for (found,) in ask(new, "SELECT id FROM message")}
        assert found | {message.id for message in result.lost_messages} == everything
        assert result.corrected or not result.is_complete
        assert_is_sound(new)


def test_a_flipped_bit_in_the_database_is_corrected(closed: Path, tmp_path: Path) -> None:
    damaged = copy_of(closed, tmp_path / "damaged")
    page = page_of(closed, "message")
    flip(damaged, (page - 1) * PAGE + 2_000, bit=0)

    result = salvaged(damaged, tmp_path / "new")

    assert result.is_complete
    assert result.corrected == [f"page {page} of {FILE}"]
    assert rows(tmp_path / "new" / FILE) == rows(closed)


def test_messages_on_a_page_that_is_lost_are_listed_and_the_others_are_kept(
    closed: Path, tmp_path: Path
) -> None:
    damaged = copy_of(closed, tmp_path / "damaged")
    page = page_of(closed, "message", 1)
    overwrite(damaged, (page - 1) * PAGE + 512, random.Random(5).randbytes(1024))

    result = salvaged(damaged, tmp_path / "new")

    new = tmp_path / "new" / FILE
    kept = {found for (found,) in ask(new, "SELECT id FROM message")}
    lost = {message.id for message in result.lost_messages}
    assert kept
    assert lost
    assert kept | lost == live_ids(closed, tmp_path / "whole")
    assert {message.queue for message in result.lost_messages} == set(QUEUES)
    assert not result.is_complete
    [report] = [table for table in result.tables if table.unreadable_pages]
    assert (report.table, report.unreadable_pages) == ("message", 1)
    assert_is_sound(new)


def test_nothing_waits_for_a_lost_message(closed: Path, tmp_path: Path) -> None:
    """Its group is not stuck, and its dedup key may be used again."""
    damaged = copy_of(closed, tmp_path / "damaged")
    page = page_of(closed, "message")
    overwrite(damaged, (page - 1) * PAGE + 512, random.Random(6).randbytes(1024))

    result = salvaged(damaged, tmp_path / "new")
    store = open_sqlite(tmp_path / "new" / FILE)
    driver = StoreDriver(store, ManualClock())

    queue = driver.read(lambda s: s.queues.page(prefix="mail", after="", limit=1))[0]
    kept = ask(tmp_path / "new" / FILE, "SELECT dedup_key FROM message")
    missing = next(
        f"key-{number}" for number in range(DONE * 2, COUNT) if (f"key-{number}",) not in kept
    )
    assert result.lost_messages
    assert driver.send(queue, dedup_key=missing)
    assert {message.group for message in driver.claim(queue, 100)} == {"g0", "g1", "g2", None}
    store.close()


def test_a_message_without_its_body_is_listed(closed: Path, tmp_path: Path) -> None:
    damaged = copy_of(closed, tmp_path / "damaged")
    [(body_table,)] = ask(
        closed, "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'body_%'"
    )
    page = page_of(closed, body_table, 1)
    overwrite(damaged, (page - 1) * PAGE + 512, random.Random(7).randbytes(1024))

    result = salvaged(damaged, tmp_path / "new")

    assert {message.reason for message in result.lost_messages} == {"its body cannot be read"}
    assert_is_sound(tmp_path / "new" / FILE)


def test_messages_of_a_queue_that_is_lost_are_kept_under_a_new_name(
    closed: Path, tmp_path: Path
) -> None:
    damaged = copy_of(closed, tmp_path / "damaged")
    overwrite(damaged, (page_of(closed, "queue") - 1) * PAGE, bytes(PAGE))

    result = salvaged(damaged, tmp_path / "new")

    new = tmp_path / "new" / FILE
    assert not result.lost_messages
    assert ask(new, "SELECT name FROM queue ORDER BY 1") == [("salvaged-1",), ("salvaged-2",)]
    assert ask(new, "SELECT count(*) FROM message") == [(COUNT - DONE,)]
    assert_is_sound(new)


def test_rows_are_found_that_no_tree_leads_to(closed: Path, tmp_path: Path) -> None:
    damaged = copy_of(closed, tmp_path / "damaged")
    [(root,)] = ask(closed, "SELECT rootpage FROM sqlite_master WHERE name = 'message'")
    overwrite(damaged, (root - 1) * PAGE, random.Random(8).randbytes(PAGE))

    result = salvaged(damaged, tmp_path / "new")

    assert not result.lost_messages
    assert ask(tmp_path / "new" / FILE, "SELECT count(*) FROM message") == [(COUNT - DONE,)]
    assert not result.is_complete


def test_each_damaged_page_is_named_with_its_table_and_its_queues(
    closed: Path, tmp_path: Path
) -> None:
    damaged = copy_of(closed, tmp_path / "damaged")
    rows_page, index_page = page_of(closed, "message", 1), page_of(closed, "message_by_id")
    overwrite(damaged, (rows_page - 1) * PAGE + 512, random.Random(9).randbytes(512))
    flip(damaged, (index_page - 1) * PAGE + 100, bit=0)

    found = {page.page_no: page for page in damaged_pages(damaged)}

    assert found.keys() == {rows_page, index_page}
    assert (found[rows_page].table, found[rows_page].queues) == ("message", QUEUES)
    assert not found[rows_page].is_correctable
    assert (found[index_page].table, found[index_page].index) == ("message", "message_by_id")
    assert found[index_page].is_correctable
    assert damaged_pages(closed) == []


def test_a_store_in_use_or_without_a_first_page_cannot_be_salvaged(
    closed: Path, tmp_path: Path
) -> None:
    used = copy_of(closed, tmp_path / "used")
    store = open_sqlite(used)
    with pytest.raises(StoreRefused, match="in use"):
        salvage(used, tmp_path / "new" / FILE, now=1, progress=lambda *_: None)
    store.close()
    with pytest.raises(InvalidRequest, match="exists already"):
        salvage(used, used, now=1, progress=lambda *_: None)
    overwrite(used, 0, bytes(PAGE))
    with pytest.raises(StoreDamaged, match="first page"):
        salvage(used, tmp_path / "new" / FILE, now=1, progress=lambda *_: None)

    assert not (tmp_path / "new" / FILE).exists()
