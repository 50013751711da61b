"""Row 13 without a server: syncs fail and the power is cut anywhere, over and over, by the seed."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import apsw
import pytest

from penstock.domain.errors import StoreUnavailable
from penstock.store.maintenance.sqlite_checks import examine
from penstock.store.sqlite.log_sync import log_of
from penstock.store.store import open_sqlite
from tests.clocks import NOON
from tests.faults.directory import Names
from tests.faults.disk import Loss
from tests.faults.figures import figure
from tests.faults.rig import Rig, rigged

WALKS = figure(30, 1000)
STEPS = 40
SLICE = 10


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store large enough that two commits do not touch the same pages."""
    folder = tmp_path_factory.mktemp("filled")
    with rigged(folder, 0) as rig:
        for _ in range(12):
            assert rig.send(50, 100)
        rig.claim(200)
        rig.restart()
    return folder


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(filled, tmp_path / "data"))


def fail_a_sync(rig: Rig) -> None:
    """An acknowledged send, then completions on other pages whose sync fails."""
    rig.claim(100)
    assert rig.send(1, 10)
    rig.claim(100)
    rig.trouble.fates = [False]
    rig.complete()


@pytest.mark.parametrize("good", range(6))
def test_the_next_syncs_may_fail_as_well(folder: Path, good: int) -> None:
    """At worst that of the new log's head: a power cut then brings back the old log."""
    with rigged(folder, 0) as rig:
        fail_a_sync(rig)
        rig.trouble.fates = [True] * good + [False]
        rig.send(1, 10)

        rig.cut_power()

        rig.assert_kept()


@pytest.mark.parametrize("loss", list(Loss))
def test_the_power_may_fail_anywhere_on_the_way_back_from_a_failed_sync(
    filled: Path, tmp_path: Path, loss: Loss
) -> None:
    number, was_cut = 0, True
    while was_cut:
        number += 1
        folder = Path(shutil.copytree(filled, tmp_path / str(number)))
        with rigged(folder, number) as rig:
            rig.loss = loss
            fail_a_sync(rig)
            rig.trouble.cut_at = rig.trouble.calls + number
            rig.send(1, 10)
            was_cut = rig.trouble.is_off
            rig.cut_power()
            rig.assert_kept()
        shutil.rmtree(folder)
    assert number > 20, "it was hardly ever cut"


def drop_claims(rig: Rig) -> None:
    """Claims wait for no sync; that of the checkpoint behind them fails."""
    assert rig.send(20, 10)
    rig.trouble.fates = [False]
    rig.claim(100)
    assert not rig.trouble.fates, "there was no checkpoint"


def test_nothing_is_acknowledged_behind_claims_that_a_failed_checkpoint_dropped(
    folder: Path,
) -> None:
    with rigged(folder, 0, checkpoint_pages=20) as rig:
        drop_claims(rig)
        rig.trouble.fates = [True, False]  # enough for a commit in the same log
        rig.send(1, 10)

        rig.cut_power()

        rig.assert_kept()


@pytest.mark.parametrize("calls", range(2, 32, 2))
def test_a_connection_whose_checkpoint_failed_does_not_try_again_when_it_closes(
    folder: Path, calls: int
) -> None:
    with rigged(folder, 0, checkpoint_pages=20) as rig:
        rig.restart()  # without readers the writer is the last one to close
        drop_claims(rig)
        rig.loss = Loss.RANDOM_SECTORS
        rig.trouble.cut_at = rig.trouble.calls + calls

        rig.restart()
        rig.cut_power()

        rig.assert_kept()


def test_while_another_process_keeps_notes_on_the_log_a_failed_sync_is_not_got_over(
    folder: Path,
) -> None:
    with rigged(folder, 0, checkpoint_pages=20) as rig:
        assert rig.send(20, 10)
        other = apsw.Connection(str(rig.path), flags=apsw.SQLITE_OPEN_READONLY)
        other.execute("BEGIN; SELECT count(*) FROM message").fetchall()
        rig.claim(100)  # the log is moved as far as the other one has read it, without a sync
        other.execute("COMMIT")
        rig.trouble.fates = [True, True, False]  # all of it is, and the database's sync fails
        assert rig.send(40, 3000)  # enough to try again
        assert not rig.trouble.fates, "it was not moved again"

        assert not rig.send(1, 10), "it would have moved only the rest once more"
        other.close()
        assert rig.send(1, 10)
        rig.cut_power()

        rig.assert_kept()


def test_a_store_that_cannot_be_opened_leaves_no_connection_behind(folder: Path) -> None:
    with rigged(folder, 0) as rig:
        assert rig.send(1, 10)
        rig.crash()
        for syncs in range(3):  # the log's own, the checkpoint's, the database's
            rig.trouble.fates = [True] * syncs + [False]

            with pytest.raises(StoreUnavailable) as refused:
                open_sqlite(rig.path)

            assert not rig.connections(), refused.value


def test_a_check_up_leaves_the_log_of_a_crash_to_the_next_start(folder: Path) -> None:
    with rigged(folder, 0) as rig:
        assert rig.send(1, 10)
        rig.crash()
        log = log_of(rig.path).read_bytes()

        assert list(examine(rig.path, now=NOON))

        assert log
        assert log_of(rig.path).read_bytes() == log


@pytest.mark.parametrize("has_mover", [False, True])
@pytest.mark.parametrize("start", range(0, WALKS, SLICE))
def test_whatever_syncs_fail_a_power_cut_takes_nothing_acknowledged(
    filled: Path, tmp_path: Path, start: int, has_mover: bool
) -> None:
    for seed in range(start, start + SLICE):
        folder = Path(shutil.copytree(filled, tmp_path / str(seed)))
        pages = (5, 40, 10_000)[seed % 3]
        with rigged(folder, seed, checkpoint_pages=pages, has_mover=has_mover) as rig:
            walk(rig, random.Random(seed))
        shutil.rmtree(folder)


def walk(rig: Rig, dice: random.Random) -> None:
    for _ in range(STEPS):
        rig.loss, rig.names = dice.choice([*Loss, Loss.EVERYTHING]), dice.choice(list(Names))
        if dice.random() < 0.3:
            rig.trouble.syncs_fail = dice.choice((0.0, 0.3, 0.5))
            rig.trouble.failed_sync_keeps = dice.choice((0.0, 0.0, 0.5, 1.0))
        if dice.random() < 0.1:
            rig.trouble.cut_at = rig.trouble.calls + dice.randint(1, 60)
        move(rig, dice)
        if rig.trouble.is_off or dice.random() < 0.15:
            rig.cut_power()
            rig.assert_kept()


def move(rig: Rig, dice: random.Random) -> None:
    match dice.randrange(12):
        case 0 | 1 | 2 | 3:
            rig.send(dice.choice((1, 1, 20)), dice.choice((10, 3000)))
        case 4 | 5 | 6:
            rig.claim(dice.choice((1, 100)))
        case 7 | 8:
            rig.complete()
        case 9:
            rig.read()
        case 10:
            rig.kill()
        case 11:
            rig.restart()
