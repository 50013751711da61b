"""Who starves whom, and the workers of each day that this is computed from."""

from __future__ import annotations

import json
from typing import Any

from penstock.domain.lake.layout import FACTS, HISTORY
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.limits import HOUR, MINUTE
from penstock.pipeline.jobs.known_workers import KNOWN_WORKERS, known_workers
from penstock.pipeline.jobs.outage_cost import OUTAGE_COST
from penstock.pipeline.jobs.poison import poison_releases
from penstock.pipeline.jobs.starvation import STARVATION, starvation
from penstock.pipeline.schemas import conform
from tests.pipeline.rows import DT, NOON, at, computed, day_after, frame, pairs

POOL = '["mail","reports"]'


def registered(worker: str, clock: str = "08:00:00", **data: Any) -> dict[str, Any]:
    return {
        "kind": "worker_registered",
        "subject": worker,
        "at": at(clock),
        "data": json.dumps(data),
    }


def test_a_worker_is_known_for_four_weeks_with_its_release_and_its_queues_in_order(spark):
    facts = (
        registered("w-1", name="a", queues=["reports", "mail"], labels={"release": "1.2"}),
        registered("w-2", queues=[]),
        {"kind": "worker_left", "subject": "w-3"},
    )

    found = conform(
        known_workers({"facts": frame(spark, FACTS, *facts)}, PipelineSettings()), KNOWN_WORKERS
    )

    assert found.count() == 2 * 28
    assert pairs(found.where(f"dt = '{DT}'"), "worker", "name", "queues", "release") == [
        ("w-1", "a", POOL, "1.2"),
        ("w-2", None, None, None),
    ]
    assert found.where(f"dt = '{day_after(DT, 27)}'").count() == 2


def test_the_queue_that_keeps_the_workers_busy_starves_the_one_whose_messages_wait(spark):
    busy = [
        {
            "queue": "reports",
            "group_key": "acme",
            "leased_by": "w-1",
            "sent_at": at("10:00:00") + n * MINUTE,
            "first_leased_at": at("10:00:00") + n * MINUTE,
            "leased_at": at("10:00:00") + n * MINUTE,
            "finished_at": at("10:00:00") + (n + 1) * MINUTE,
        }
        for n in range(9)
    ]
    waits = {
        "queue": "mail",
        "leased_by": "w-1",
        "sent_at": at("10:00:00"),
        "first_leased_at": at("10:09:00"),
        "leased_at": at("10:09:00"),
        "finished_at": at("10:09:10"),
    }
    elsewhere = waits | {"leased_by": "w-2", "queue": "audit", "finished_at": at("11:09:00")}
    unknown = waits | {"leased_by": "someone"}
    held = waits | {"route": "/shop/.*", "queue": "orders"}
    history = frame(spark, HISTORY, *busy, waits, elsewhere, unknown, held)
    known = computed(
        spark,
        KNOWN_WORKERS,
        {"worker": "w-1", "queues": POOL, "dt": DT},
        {"worker": "w-2", "queues": '["audit"]', "dt": DT},
    )

    outage = {"route": "/shop/.*", "from_at": at("10:00:00"), "to_at": at("10:05:00"), "dt": DT}
    tables = {
        "history": history,
        "known_workers": known,
        "outage_cost": computed(spark, OUTAGE_COST, outage),
    }

    found = conform(starvation(tables, PipelineSettings()), STARVATION)

    [row, second] = found.orderBy("rank").collect()
    assert (row.pool, row.queue, row.tenant, row.late) == (POOL, "mail", None, 1)
    assert (row.limit_ms, row.wait_ms, row.wait_max_ms) == (MINUTE, 9 * MINUTE, 9 * MINUTE)
    assert (row.by_queue, row.by_tenant, row.rank) == ("reports", "acme", 1)
    assert (second.queue, second.by_queue) == ("mail", "orders")
    assert round(row.share, 3) == round(540 / 560, 3)
    assert round(row.own_share, 3) == round(10 / 560, 3)


def test_absurd_times_do_not_overflow(spark):
    """Half of a day's waits times its work exceeds what a long holds."""
    long_ago = {"leased_by": "w-1", "sent_at": 0, "first_leased_at": 0, "leased_at": 0}
    worked = [long_ago | {"queue": "reports", "finished_at": at("10:05:00")}] * 2_400
    waits = {
        "queue": "mail",
        "leased_by": "w-1",
        "sent_at": 0,
        "first_leased_at": at("10:09:00"),
        "leased_at": at("10:09:00"),
        "finished_at": at("10:09:10"),
    }
    tables = {
        "history": frame(spark, HISTORY, *worked, *[waits] * 2_400),
        "known_workers": computed(
            spark, KNOWN_WORKERS, {"worker": "w-1", "queues": POOL, "dt": DT}
        ),
        "outage_cost": computed(spark, OUTAGE_COST),
    }

    [row] = conform(starvation(tables, PipelineSettings()), STARVATION).collect()

    assert (row.queue, row.late, row.by_queue) == ("mail", 2_400, "reports")
    assert 0.99 < row.share <= 1


def test_failing_kinds_are_counted_by_release(spark):
    fails = {"kind": "refund", "leased_by": "w-2", "failures": 1, "finished_at": NOON + HOUR}
    history = frame(
        spark,
        HISTORY,
        *[{"kind": "refund", "leased_by": "w-1"}] * 3,
        *[fails] * 2,
        {**fails, "leased_by": "unknown"},
        {"kind": "fine", "leased_by": "w-1"},
    )
    known = computed(
        spark,
        KNOWN_WORKERS,
        {"worker": "w-1", "release": "1.2", "dt": DT},
        {"worker": "w-2", "release": "1.3", "dt": DT},
    )

    found = poison_releases({"history": history, "known_workers": known}, PipelineSettings())

    assert pairs(found, "kind", "release", "messages", "failing", "first_at", "is_poison") == [
        ("refund", "1.2", 3, 0, NOON, False),
        ("refund", "1.3", 2, 2, NOON + HOUR, True),
        ("refund", None, 1, 1, NOON + HOUR, True),
    ]
