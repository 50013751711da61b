"""A sync fails in one process while others use the same file: none builds on lost data."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from penstock.domain.errors import PenstockError, StoreUnavailable
from penstock.ports.store import Sent
from penstock.store.store import SqlStore, open_sqlite
from tests.factories import a_new_message
from tests.faults.disk import Loss
from tests.faults.driver import FaultyStoreDriver, rigged
from tests.faults.figures import figure

WALKS = figure(10, 300)
STEPS = 30


@contextmanager
def beside(driver: FaultyStoreDriver, count: int = 1) -> Iterator[list[SqlStore]]:
    """Stores on the same file, like those of other processes."""
    others = [open_sqlite(driver.path) for _ in range(count)]
    try:
        yield others
    finally:
        for other in others:
            other.close()


def send_through(driver: FaultyStoreDriver, store: SqlStore) -> bool:
    new = a_new_message(driver.queue)
    with suppress(PenstockError):
        [answer] = store.send([new]).result()
        assert isinstance(answer, Sent)
        driver.kept.add(new.message.id)
        return True
    return False


def fail_a_sync(driver: FaultyStoreDriver) -> None:
    driver.claim(100)
    driver.trouble.fates = [False]
    assert not driver.send(1, 10)


@pytest.mark.parametrize("loss", list(Loss))
def test_commits_of_other_processes_after_a_failed_sync_survive_a_power_cut(
    tmp_path: Path, loss: Loss
) -> None:
    with rigged(tmp_path, 0) as driver:
        driver.loss = loss
        assert driver.send(20, 10)
        with beside(driver) as [other]:
            assert send_through(driver, other)
            fail_a_sync(driver)

            assert send_through(driver, other)
            other.close()
        driver.cut_power()

        driver.assert_kept()


def test_idle_processes_close_the_store_at_once_after_a_failed_sync(tmp_path: Path) -> None:
    with rigged(tmp_path, 0, checkpoint_pages=5) as driver:
        assert driver.send(20, 10)
        with beside(driver, 3) as others:
            for other in others:
                assert send_through(driver, other)
                other.read(lambda session: session.queues.count()).result()
            fail_a_sync(driver)

            assert driver.send(1, 10)
            assert all(send_through(driver, other) for other in others)
        driver.cut_power()

        driver.assert_kept()


def test_a_store_whose_log_is_not_durable_cannot_be_opened(tmp_path: Path) -> None:
    with rigged(tmp_path, 0) as driver:
        assert driver.send(1, 10)
        with beside(driver) as [other]:
            other.close_connections = lambda then: None  # type: ignore[method-assign]  # as if it were stopped
            fail_a_sync(driver)

            with pytest.raises(StoreUnavailable):
                open_sqlite(driver.path)

        open_sqlite(driver.path).close()


@pytest.mark.parametrize("seed", range(WALKS))
def test_nothing_acknowledged_is_lost_whichever_syncs_fail_in_any_process(
    tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    with rigged(tmp_path, seed, checkpoint_pages=(5, 40, 10_000)[seed % 3]) as driver:
        assert driver.send(30, 10)
        for _ in range(2):
            with beside(driver, 2) as others:
                for _ in range(STEPS):
                    if dice.random() < 0.3:
                        driver.trouble.syncs_fail = dice.choice((0.0, 0.0, 0.3))
                    match dice.randrange(4):
                        case 0:
                            driver.send(1, dice.choice((10, 3000)))
                        case 1:
                            driver.claim(5)
                        case 2:
                            driver.complete()
                        case _:
                            send_through(driver, dice.choice(others))
                driver.trouble.syncs_fail = 0.0
            driver.cut_power()
            driver.assert_kept()
