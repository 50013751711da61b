"""A day on which one queue has most of the messages, and everything else occurs once."""

from __future__ import annotations

from bench.pipeline.skew import make
from penstock.domain.lake.layout import HISTORY
from tests.pipeline.lake_driver import FEW_CANDIDATES, LakeDriver

MESSAGES, KINDS, QUEUES = 2_000, 2_000, 60
BIG, BIG_ROUTE = "q-1", "/r-1"


def test_most_messages_in_one_queue_and_as_many_kinds_as_messages(driver: LakeDriver):
    make(driver.folder, messages=MESSAGES, kinds=KINDS, queues=QUEUES)

    runs = driver.run("poison", "breaker_tuning", "scaling_backtest", settings=FEW_CANDIDATES)

    assert {(run.status, run.note) for run in runs} == {("done", "")}
    history = driver.read(HISTORY.name)
    counts = {row["queue"]: row["count"] for row in history.groupBy("queue").count().collect()}
    assert len(counts) > 20
    assert counts[BIG] == 0.95 * MESSAGES
    now = [row for row in driver.rows("breaker_tuning") if row["candidate"] == "now"]
    calls = {row["route"]: row["calls"] for row in now}
    assert calls["*"] == MESSAGES + MESSAGES // 50
    assert calls[BIG_ROUTE] >= counts[BIG]
    assert len(calls) == 1 + len(counts)
    played = [row for row in driver.rows("scaling_backtest") if row["candidate"] == "now"]
    assert {row["queue"]: row["messages"] for row in played} == counts
    assert driver.rows("poison_kinds") == []
