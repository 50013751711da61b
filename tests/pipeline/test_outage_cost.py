"""What an outage cost: late and dead messages, by queue and tenant."""

from __future__ import annotations

import json
from typing import Any

from pyspark.testing import assertDataFrameEqual

from penstock.domain.lake.layout import ATTEMPTS, FACTS, HISTORY
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.limits import MINUTE
from penstock.pipeline.jobs.outage_cost import OUTAGE_COST, outage_cost
from penstock.pipeline.schemas import conform
from tests.pipeline.rows import DT, at, computed, frame

ROUTE = "/shop/.*"


def change(kind: str, clock: str, was: str) -> dict[str, Any]:
    data = json.dumps({"pattern": ROUTE, "was": was})
    return {"kind": f"circuit_{kind}", "at": at(clock), "subject": "c1", "data": data}


def message(sent: str, claimed: str, **more: Any) -> dict[str, Any]:
    leased_at = at(claimed)
    return {
        "route": ROUTE,
        "queue": "orders",
        "sent_at": at(sent),
        "first_leased_at": leased_at,
        "leased_at": leased_at,
        "finished_at": leased_at + 1_000,
        **more,
    }


def test_late_and_dead_messages_are_counted_by_queue_and_tenant(spark):
    facts = (change("opened", "10:00:00", "closed"), change("closed", "11:00:00", "half_open"))
    history = (
        message("10:10:00", "11:02:00", group_key="acme"),
        message("10:30:00", "11:02:00", group_key="acme"),
        # In time, although it was sent while the circuit was open: a probe.
        message("10:58:00", "10:58:30", group_key="acme"),
        # Late while the route recovered.
        message("11:10:00", "11:20:00", group_key="beta"),
        message("09:00:00", "09:50:00", group_key="acme"),  # before the outage
        message("12:30:00", "12:50:00", group_key="acme"),  # after the recovery
        message("10:05:00", "10:06:00", queue="hooks", outcome="dead"),
        message("10:10:00", "11:02:00", route="/other"),
    )
    tables = {
        "history": frame(spark, HISTORY, *history),
        "attempts": frame(spark, ATTEMPTS),
        "facts": frame(spark, FACTS, *facts),
    }

    found = conform(outage_cost(tables, PipelineSettings()), OUTAGE_COST)

    same = {
        "route": ROUTE,
        "from_at": at("10:00:00"),
        "to_at": at("11:00:00"),
        "limit_ms": MINUTE,
        "dt": DT,
        "dead": 0,
    }
    over = (51 * MINUTE, 31 * MINUTE, 9 * MINUTE)
    assertDataFrameEqual(
        found,
        computed(
            spark,
            OUTAGE_COST,
            same
            | {
                "queue": "orders",
                "tenant": "acme",
                "messages": 3,
                "late": 2,
                "late_ms": over[0] + over[1],
                "late_max_ms": over[0],
            },
            same
            | {
                "queue": "orders",
                "tenant": "beta",
                "messages": 1,
                "late": 1,
                "late_ms": over[2],
                "late_max_ms": over[2],
            },
            same | {"queue": "hooks", "messages": 1, "late": 0, "dead": 1, "late_ms": 0},
        ),
    )
