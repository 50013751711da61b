"""A broker runs, its archiver writes, the jobs compute: the numbers equal the broker's counters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from penstock.domain.limits import HOUR, MINUTE
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.message.transfer import redrive
from penstock.domain.queue.queue import Queue
from tests.pipeline.lake_driver import LakeDriver
from tests.runtime.archiver.driver import ArchiverDriver
from tests.store.conftest import backend, clock, open_store, renewable_database, store, store_driver
from tests.store.driver import StoreDriver

__all__ = ["backend", "clock", "store_driver", "open_store", "renewable_database", "store"]


@pytest.fixture
def driver(store_driver: StoreDriver, tmp_path: Path) -> ArchiverDriver:
    return ArchiverDriver(store_driver, tmp_path / "lake")


def play(driver: ArchiverDriver) -> list[Queue]:
    """Two days and a bit in the life of a broker, archived now and then."""
    store_driver = driver.store_driver
    queues = [
        store_driver.queue("mail", max_attempts=2),
        store_driver.queue("orders", max_attempts=3),
    ]
    for turn in range(26):
        queue = queues[turn % 2]
        store_driver.send_many(queue, 4, kind=f"kind-{turn % 3}")
        store_driver.clock.advance(ms=1_700)
        claimed = store_driver.claim(
            queue, 3 + turn % 2, claimed_by=f"w-{turn % 4}", lease_ms=MINUTE
        )
        for number, message in enumerate(claimed):
            store_driver.clock.advance(ms=350)
            _end(driver, turn + number, message)
        if turn % 5 == 4:
            driver.run()
        store_driver.clock.advance(ms=2 * HOUR)
    for message_id in store_driver.browse_ids(queues[0], State.DEAD)[:2]:
        store_driver.alter(message_id, lambda m, q: redrive(m, q, now=store_driver.now))
    driver.run()
    return queues


def _end(driver: ArchiverDriver, number: int, message: Any) -> None:
    store_driver = driver.store_driver
    match number % 7:
        case 0:
            store_driver.act(Verb.FAIL, message, text="no")
        case 1:
            store_driver.act(Verb.RELEASE, message)
        case 2:
            pass  # its lease runs out
        case 3:
            store_driver.act(Verb.BURY, message, text="no use")
        case 4:
            store_driver.act(Verb.CANCEL, message)
        case _:
            store_driver.complete(message)


def test_the_numbers_of_the_jobs_are_the_brokers_own_counters(driver, spark):
    queues = play(driver)
    lake_driver = LakeDriver(spark, driver.folder)

    runs = lake_driver.run("rollups", "capacity")

    assert {run.status for run in runs} == {"done"}, [run.note for run in runs]
    assert lake_driver.read("quality").where("NOT is_passed").collect() == []
    days = lake_driver.read("rollups").where("grain = 'day' AND dimension = 'queue'")
    summed = days.groupBy("name").agg(*(F.sum(n).alias(n) for n in ("done", "dead", "cancelled")))
    found = {row["name"]: row for row in summed.collect()}
    attempts = lake_driver.read("attempts").groupBy("queue", "outcome").count().collect()
    ended = {(row["queue"], row["outcome"]): row["count"] for row in attempts}
    lives = {
        r["queue"]: r["count"]
        for r in lake_driver.read("lifecycle").groupBy("queue").count().collect()
    }
    for queue in queues:
        counts = driver.store_driver.counts(queue)
        assert counts.is_balanced
        assert found[queue.name].done == counts.done_total > 0
        assert found[queue.name].dead == counts.dead_total > 0
        assert found[queue.name].cancelled == counts.cancelled_total > 0
        assert ended.get((queue.name, "failed"), 0) == counts.failed_total
        assert ended.get((queue.name, "expired"), 0) == counts.expired_total
        assert lives[queue.name] == counts.sent_total - counts.live
    assert days.select("dt").distinct().count() == 3
