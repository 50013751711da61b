"""Syncs fail and the power is cut at any point, without a server, reproducible by a number."""

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
from tests.faults.driver import FaultyStoreDriver, rigged
from tests.faults.figures import figure

WALKS = figure(20, 1000)
STEPS = 40
SLICE = 10


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store large enough that two commits do not touch the same pages."""
    folder = tmp_path_factory.mktemp("filled")
    with rigged(folder, 0) as driver:
        for _ in range(12):
            assert driver.send(50, 100)
        driver.claim(200)
        driver.restart()
    return folder


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In memory: the disk is a simulated one."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(filled, tmp_path / "data"))


def fail_a_sync(driver: FaultyStoreDriver) -> None:
    """An acknowledged send, then completions on other pages whose sync fails."""
    driver.claim(100)
    assert driver.send(1, 10)
    driver.claim(100)
    driver.trouble.fates = [False]
    driver.complete()


@pytest.mark.parametrize("good", range(6))
def test_the_next_syncs_may_fail_as_well(folder: Path, good: int) -> None:
    """At worst that of the new log's header: a power cut then brings back the old log."""
    with rigged(folder, 0) as driver:
        fail_a_sync(driver)
        driver.trouble.fates = [True] * good + [False]
        driver.send(1, 10)

        driver.cut_power()

        driver.assert_kept()


@pytest.mark.parametrize("loss", list(Loss))
def test_the_power_may_fail_anywhere_on_the_way_back_from_a_failed_sync(
    filled: Path, tmp_path: Path, loss: Loss
) -> None:
    number, was_cut = 0, True
    while was_cut:
        number += 1
        folder = Path(shutil.copytree(filled, tmp_path / str(number)))
        with rigged(folder, number) as driver:
            driver.loss = loss
            fail_a_sync(driver)
            driver.trouble.cut_at = driver.trouble.calls + number
            driver.send(1, 10)
            was_cut = driver.trouble.is_off
            driver.cut_power()
            driver.assert_kept()
        shutil.rmtree(folder)
    assert number > 20, "the power was hardly ever cut"


def drop_claims(driver: FaultyStoreDriver) -> None:
    """Claims are not synced; the sync of the checkpoint behind them fails."""
    assert driver.send(20, 10)
    driver.trouble.fates = [False]
    driver.claim(100)
    assert not driver.trouble.fates, "there was no checkpoint"


def test_nothing_is_acknowledged_behind_claims_that_a_failed_checkpoint_dropped(
    folder: Path,
) -> None:
    with rigged(folder, 0, checkpoint_pages=20) as driver:
        drop_claims(driver)
        driver.trouble.fates = [True, False]  # enough for a commit in the same log
        driver.send(1, 10)

        driver.cut_power()

        driver.assert_kept()


@pytest.mark.parametrize("calls", range(2, 32, 2))
def test_a_connection_whose_checkpoint_failed_does_not_try_again_when_it_closes(
    folder: Path, calls: int
) -> None:
    with rigged(folder, 0, checkpoint_pages=20) as driver:
        driver.restart()  # without readers the writer is the last one to close
        drop_claims(driver)
        driver.loss = Loss.RANDOM_SECTORS
        driver.trouble.cut_at = driver.trouble.calls + calls

        driver.restart()
        driver.cut_power()

        driver.assert_kept()


def test_while_another_process_has_the_log_open_a_failed_sync_is_not_recovered_from(
    folder: Path,
) -> None:
    with rigged(folder, 0, checkpoint_pages=20) as driver:
        assert driver.send(20, 10)
        other = apsw.Connection(str(driver.path), flags=apsw.SQLITE_OPEN_READONLY)
        other.execute("BEGIN; SELECT count(*) FROM message").fetchall()
        driver.claim(100)  # the log is moved as far as the other one has read it, without a sync
        other.execute("COMMIT")
        driver.trouble.fates = [True, True, False]  # all of it is, and the database's sync fails
        assert driver.send(40, 3000)  # enough to try again
        assert not driver.trouble.fates, "it was not moved again"

        assert not driver.send(1, 10), "it would have moved only the rest again"
        other.close()
        assert driver.send(1, 10)
        driver.cut_power()

        driver.assert_kept()


def test_a_store_that_cannot_be_opened_leaves_no_connection_behind(folder: Path) -> None:
    with rigged(folder, 0) as driver:
        assert driver.send(1, 10)
        driver.crash()
        for syncs in range(3):  # the log's own, the checkpoint's, the database's
            driver.trouble.fates = [True] * syncs + [False]

            with pytest.raises(StoreUnavailable) as refused:
                open_sqlite(driver.path)

            assert not driver.connections(), refused.value


def test_the_doctor_leaves_the_log_of_a_crash_to_the_next_start(folder: Path) -> None:
    with rigged(folder, 0) as driver:
        assert driver.send(1, 10)
        driver.crash()
        log = log_of(driver.path).read_bytes()

        assert list(examine(driver.path, now=NOON))

        assert log
        assert log_of(driver.path).read_bytes() == log


@pytest.mark.parametrize("has_mover", [False, True])
@pytest.mark.parametrize("start", range(0, WALKS, SLICE))
def test_a_power_cut_loses_nothing_acknowledged_whichever_syncs_fail(
    filled: Path, tmp_path: Path, start: int, has_mover: bool
) -> None:
    for seed in range(start, start + SLICE):
        folder = Path(shutil.copytree(filled, tmp_path / str(seed)))
        pages = (5, 40, 10_000)[seed % 3]
        with rigged(folder, seed, checkpoint_pages=pages, has_mover=has_mover) as driver:
            walk(driver, random.Random(seed))
        shutil.rmtree(folder)


def walk(driver: FaultyStoreDriver, dice: random.Random) -> None:
    for _ in range(STEPS):
        driver.loss, driver.names = dice.choice([*Loss, Loss.EVERYTHING]), dice.choice(list(Names))
        if dice.random() < 0.3:
            driver.trouble.syncs_fail = dice.choice((0.0, 0.3, 0.5))
            driver.trouble.failed_sync_keeps = dice.choice((0.0, 0.0, 0.5, 1.0))
        if dice.random() < 0.1:
            driver.trouble.cut_at = driver.trouble.calls + dice.randint(1, 60)
        move(driver, dice)
        if driver.trouble.is_off or dice.random() < 0.15:
            driver.cut_power()
            driver.assert_kept()


def move(driver: FaultyStoreDriver, dice: random.Random) -> None:
    match dice.randrange(12):
        case 0 | 1 | 2 | 3:
            driver.send(dice.choice((1, 1, 20)), dice.choice((10, 3000)))
        case 4 | 5 | 6:
            driver.claim(dice.choice((1, 100)))
        case 7 | 8:
            driver.complete()
        case 9:
            driver.read()
        case 10:
            driver.kill()
        case 11:
            driver.restart()
