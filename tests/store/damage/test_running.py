"""A running store hits a damaged page."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.domain.errors import StoreDamaged
from penstock.domain.queue.queue import Queue
from penstock.ports.store import Sent
from penstock.store.store import open_sqlite
from tests.clocks import ManualClock
from tests.store.damage.stores import COUNT, PAGE, QUEUES, ask, copy_of, overwrite, page_of
from tests.store.driver import WAIT_S, StoreDriver
from tests.support.waiting import eventually


@pytest.fixture
def driver(closed: Path, tmp_path: Path) -> Iterator[StoreDriver]:
    """On a store that has lost a page with bodies."""
    damaged = copy_of(closed, tmp_path / "damaged")
    [(table,)] = ask(closed, "SELECT name FROM sqlite_master WHERE name LIKE 'body_%'")
    page = page_of(closed, table)  # not the last one: new bodies go there
    overwrite(damaged, (page - 1) * PAGE + 512, random.Random(1).randbytes(512))
    store = open_sqlite(damaged)
    yield StoreDriver(store, ManualClock())
    store.close()


def mail(driver: StoreDriver) -> Queue:
    return driver.read(lambda s: s.queues.page(prefix="mail", after="", limit=1))[0]


def test_requests_that_share_a_commit_with_one_that_hits_damage_succeed(
    driver: StoreDriver,
) -> None:
    queue = mail(driver)
    with driver.together():
        before = driver.submit_send(queue, body='"before"')
        claim = driver.submit_claim(queue, COUNT)
        after = driver.submit_send(queue, body='"after"')

    assert isinstance(before.result(WAIT_S)[0], Sent)
    assert isinstance(after.result(WAIT_S)[0], Sent)
    with pytest.raises(StoreDamaged, match="Retrying does not help"):
        claim.result(WAIT_S)


def test_damage_is_reported_once_a_request_has_hit_it(driver: StoreDriver) -> None:
    assert driver.store.damage() is None

    with pytest.raises(StoreDamaged):
        driver.claim(mail(driver), COUNT)

    [page] = eventually(lambda: (damage := driver.store.damage()) and damage.pages) or ()
    assert (page.table or "").startswith("body_")
    assert page.queues == QUEUES
