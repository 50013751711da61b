"""A damaged log is refused; one that a power cut left unfinished is not."""

from __future__ import annotations

import random
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from penstock.domain.errors import InvalidRequest, StoreDamaged
from penstock.store.damage.accept_loss import accept_loss
from penstock.store.damage.log_frames import LogFile
from penstock.store.maintenance.backup import backup
from penstock.store.sqlite.shared_connection import is_plain
from penstock.store.store import open_sqlite
from tests.clocks import ManualClock
from tests.store.damage.stores import (
    COUNT,
    ask,
    contents,
    copy_of,
    flip,
    log_of,
    overwrite,
)
from tests.store.driver import StoreDriver

# In the header: magic, page size, salts, sums.  In a frame: page number, commit mark, salts, sums.
OF_THE_HEADER = (0, 10, 17, 25)
OF_A_FRAME = (3, 7, 9, 17, 24, 2_000)


def open_and_close(path: Path) -> None:
    open_sqlite(path, checksums=not is_plain(path)).close()


def places(log: Path) -> list[int]:
    """Everywhere in the header, and in frames at the start, in the middle and at the end."""
    with closing(LogFile(log)) as file:
        frames = (1, file.count // 2, file.count)
        return [*OF_THE_HEADER, *(file.offset(no) + byte for no in frames for byte in OF_A_FRAME)]


def test_a_flipped_bit_anywhere_in_the_log_is_refused_and_nothing_is_touched(
    crashed: Path, tmp_path: Path
) -> None:
    for place in places(log_of(crashed)):
        damaged = copy_of(crashed, tmp_path / str(place))
        flip(log_of(damaged), place)
        before = log_of(damaged).read_bytes()

        with pytest.raises(StoreDamaged, match="--accept-loss") as refused:
            open_and_close(damaged)

        assert f"{log_of(damaged)} is damaged at byte" in str(refused.value)
        assert log_of(damaged).read_bytes() == before, f"flipped at {place}"


def test_the_refusal_names_the_place_and_what_lies_behind_it(crashed: Path, tmp_path: Path) -> None:
    damaged = copy_of(crashed, tmp_path / "damaged")
    with closing(LogFile(log_of(damaged))) as file:
        offset, frames = file.offset(file.count // 2), file.count - file.count // 2 + 1
        commits = sum(head.is_commit for head in file.heads(file.count // 2))
    flip(log_of(damaged), offset + 1_000)

    with pytest.raises(StoreDamaged, match=f"byte {offset}: .* {commits} commits in {frames} fr"):
        open_and_close(damaged)


def test_a_store_with_a_damaged_log_is_not_backed_up_without_its_end(
    crashed: Path, tmp_path: Path
) -> None:
    damaged = copy_of(crashed, tmp_path / "damaged")
    flip(log_of(damaged), log_of(damaged).stat().st_size // 2)

    with pytest.raises(StoreDamaged):
        backup(damaged, tmp_path / "copy.db", progress=lambda done, total: None)

    assert not (tmp_path / "copy.db").exists()


def test_a_log_that_ends_anywhere_opens_with_what_is_there(crashed: Path, tmp_path: Path) -> None:
    size = log_of(crashed).stat().st_size
    for number, cut in enumerate(random.Random(15).sample(range(40, size), 10)):
        torn = copy_of(crashed, tmp_path / str(cut))
        with log_of(torn).open("r+b") as file:
            file.truncate(cut)
            if number % 2:
                file.truncate(size)  # the length survived, the content did not: zeros

        open_and_close(torn)

        assert ask(torn, "SELECT count(*) FROM migration")


def test_a_lost_sector_among_commits_that_were_not_synced_is_an_ordinary_end(
    crashed: Path, tmp_path: Path
) -> None:
    """The last three are claims or completions: nothing behind them proves a sync."""
    torn = copy_of(crashed, tmp_path / "torn")
    with closing(LogFile(log_of(torn))) as file:
        commits = [head.no for head in file.heads(1) if head.is_commit]
        offset = file.offset(commits[-3] + 1)
    overwrite(log_of(torn), offset + 512, bytes(512))

    open_and_close(torn)


def test_a_lost_sector_in_a_commit_that_was_synced_is_damage(crashed: Path, tmp_path: Path) -> None:
    damaged = copy_of(crashed, tmp_path / "damaged")
    with closing(LogFile(log_of(damaged))) as file:
        commits = [head.no for head in file.heads(1) if head.is_commit]
        offset = file.offset(commits[-20] + 1)
    overwrite(log_of(damaged), offset + 512, random.Random(1).randbytes(512))

    if is_plain(damaged):  # an application may send without a sync
        open_and_close(damaged)
    else:
        with pytest.raises(StoreDamaged):
            open_and_close(damaged)


def test_an_operator_may_accept_the_loss_of_what_follows_the_damage(
    crashed: Path, tmp_path: Path
) -> None:
    damaged = copy_of(crashed, tmp_path / "damaged")
    flip(log_of(damaged), log_of(damaged).stat().st_size // 2)
    whole = log_of(damaged).read_bytes()

    accepted = accept_loss(damaged)
    open_and_close(damaged)

    assert Path(accepted.kept).read_bytes() == whole
    [(left,)] = ask(damaged, "SELECT max(message_no) FROM message")
    assert 0 < left < COUNT
    assert accepted.commits > COUNT - left


def test_only_damage_can_be_accepted(crashed: Path, tmp_path: Path) -> None:
    sound = copy_of(crashed, tmp_path / "sound")
    before = contents(sound.parent)

    with pytest.raises(InvalidRequest, match="not damaged"):
        accept_loss(sound)

    assert log_of(sound).read_bytes() == before[log_of(sound).name]


def test_a_loss_that_leaves_an_inconsistent_store_is_not_accepted(
    closed: Path, tmp_path: Path
) -> None:
    """What follows the damage was moved into the database before the crash."""
    live = copy_of(closed, tmp_path / "live")
    store = open_sqlite(live)
    driver = StoreDriver(store, ManualClock())
    queue = driver.queue("later")
    for _ in range(20):
        driver.send(queue, body=f'"{"y" * 3_000}"')
    damaged = copy_of(live, tmp_path / "damaged")
    ask(live, "PRAGMA wal_checkpoint(PASSIVE)")
    shutil.copyfile(live, damaged)
    store.close()
    with closing(LogFile(log_of(damaged))) as file:
        second = [head.no for head in file.heads(1) if head.is_commit][1]
        flip(log_of(damaged), file.offset(second) + 500)
    before = log_of(damaged).read_bytes()

    with pytest.raises(StoreDamaged, match=r"comes from behind it.*--salvage"):
        accept_loss(damaged)

    assert log_of(damaged).read_bytes() == before
