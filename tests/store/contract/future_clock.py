"""A store whose clock is two days ahead for a while and is then corrected."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.domain.limits import DAY, MINUTE
from penstock.domain.queue.queue import Queue
from penstock.store.maintenance import clock_mark
from penstock.store.maintenance.clock_mark import SetBack
from tests.clocks import ManualClock
from tests.store.counter_checks import check_counters
from tests.store.driver import StoreDriver

AHEAD = 2 * DAY
LEASE_MS = MINUTE


@pytest.fixture
def ahead(driver: StoreDriver) -> Iterator[StoreDriver]:
    """Two days ahead, after the store was used in the right time."""
    driver.clock.advance(days=2)
    yield driver
    check_counters(driver)


@pytest.fixture
def mail(driver: StoreDriver) -> Queue:
    return driver.queue("mail", lease_ms=LEASE_MS)


def correct(driver: StoreDriver, *, stopped_ms: int = 0) -> SetBack:
    """The clock is corrected while the store is stopped for `stopped_ms`."""
    mark = driver.now
    driver.clock = ManualClock(mark - AHEAD + stopped_ms)
    return driver.write(
        lambda s: clock_mark.set_back(s, mark=mark, now=driver.now, since=driver.now),
    )


def read_mark(driver: StoreDriver) -> int:
    return driver.read(clock_mark.read_mark)
