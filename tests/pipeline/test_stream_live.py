"""`penstock pipeline stream --live`: rollups read from the store, without an archive."""

from __future__ import annotations

import pytest

from penstock.edge.cli.pipeline.stream import _live
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.streaming import start
from penstock.runtime.minute_counters import Sampler
from tests.pipeline.rows import pairs
from tests.pipeline.test_source import broker, driver, finish, url

__all__ = ["broker", "driver", "url"]


@pytest.mark.timeout(900)  # several streams, one after the other
def test_endings_of_the_store_are_in_the_rollups_once_across_restarts(spark, url, driver, tmp_path):
    driver.queue("mail")
    derived = SparkLake(spark, f"{tmp_path}/none", tables_folder=f"{tmp_path}/derived")

    def catch_up() -> None:
        query = start(derived, *_live(spark, url), every_s=None, name="store")
        assert query.awaitTermination(400)

    finish(driver, 3)
    driver.send(driver.queues[0])
    Sampler(driver.store, retention_days=90, is_archived=True).sample(driver.now)
    catch_up()
    finish(driver, 2)
    catch_up()
    catch_up()  # nothing is new

    of_days = derived.read("rollups").where("grain = 'day' AND dimension = 'queue'")
    assert pairs(of_days, "name", "finished", "done", "backlog") == [("mail", 5, 5, 1)]
