"""Messages, kinds, routes and workers that cause failures."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.testing import assertDataFrameEqual

from penstock.domain.lake.layout import ATTEMPTS, FACTS, HISTORY
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.limits import DAY, HOUR
from penstock.pipeline.jobs.poison import KINDS, MESSAGES, poison_kinds, poison_messages
from penstock.pipeline.jobs.poison_facts import (
    FLAPPING_ROUTES,
    SILENT_WORKERS,
    flapping_routes,
    silent_workers,
)
from penstock.pipeline.schemas import conform
from tests.pipeline.rows import DT, NOON, at, computed, frame, midnight, pairs

ClaimResult = tuple[dict[str, Any], ...]


def tables(
    spark: Any, history: ClaimResult = (), attempts: ClaimResult = (), facts: ClaimResult = ()
) -> dict[str, DataFrame]:
    return {
        "history": frame(spark, HISTORY, *history),
        "attempts": frame(spark, ATTEMPTS, *attempts),
        "facts": frame(spark, FACTS, *facts),
    }


def times(count: int, **row: Any) -> ClaimResult:
    return tuple({"ended_at": NOON + n, **row} for n in range(count))


def change(kind: str, clock: str, was: str, **row: Any) -> dict[str, Any]:
    data = json.dumps({"pattern": "/mail/.*", "was": was})
    return {"kind": f"circuit_{kind}", "at": at(clock), "subject": "c1", "data": data, **row}


def test_a_message_that_fails_repeatedly_is_found_with_its_labels_and_last_error(spark):
    attempts = (
        *times(2, message_no=7, id="m-7", error="early", leased_by="w-1"),
        *times(1, message_no=7, id="m-7", outcome="timed_out", ended_at=NOON + 50, leased_by="w-2"),
        *times(2, message_no=8),
    )
    history = ({"message_no": 7, "kind": "bad", "route": "/r"}, {"message_no": 8})

    found = conform(poison_messages(tables(spark, history, attempts), PipelineSettings()), MESSAGES)

    assertDataFrameEqual(
        found,
        computed(
            spark,
            MESSAGES,
            {
                "message_no": 7,
                "id": "m-7",
                "queue": "mail",
                "kind": "bad",
                "route": "/r",
                "patterns": "fails",
                "failed": 3,
                "crashed": 0,
                "returned": 0,
                "died": 0,
                "workers": 2,
                "last_error": "early",
                "first_at": NOON,
                "last_at": NOON + 50,
                "dt": DT,
            },
        ),
    )


def test_crashing_looping_and_flapping_are_named(spark):
    attempts = (
        *times(2, message_no=1, outcome="crashed"),
        *times(4, message_no=2, outcome="expired"),
        *times(3, message_no=2, outcome="released"),
        *times(3, message_no=2, outcome="snoozed"),
        *times(9, message_no=3, outcome="expired"),
    )
    dead = {"outcome": "dead"}
    history = ({**dead, "message_no": 4}, {**dead, "message_no": 4}, {**dead, "message_no": 5})

    found = poison_messages(tables(spark, history, attempts), PipelineSettings())

    assert pairs(found, "message_no", "patterns") == [(1, "crashes"), (2, "loops"), (4, "flaps")]


def test_a_message_that_has_not_ended_is_found_without_its_kind(spark):
    [row] = poison_messages(tables(spark, (), times(5, message_no=1)), PipelineSettings()).collect()

    assert (row.patterns, row.kind) == ("fails", None)


def test_a_kind_is_poison_if_too_many_of_its_messages_fail(spark):
    fails = {"failures": 2, "attempts": 3, "last_error": "no"}
    history: ClaimResult = (
        *[{"kind": "bad", **fails}] * 2,
        {"kind": "bad", "outcome": "dead", "failures": 3, "last_error": "other"},
        {"kind": "bad"},
        *[{"kind": "good"}] * 9,
        {"kind": "good", **fails},
        {"kind": "fine"},
    )

    found = conform(poison_kinds(tables(spark, history), PipelineSettings()), KINDS)

    same = {"queue": "mail", "common_error": "no", "crashes": 0, "dt": DT}
    assertDataFrameEqual(
        found,
        computed(
            spark,
            KINDS,
            {
                **same,
                "kind": "bad",
                "messages": 4,
                "failing": 3,
                "failing_ratio": 0.75,
                "failures": 7,
                "dead": 1,
                "is_poison": True,
            },
            {
                **same,
                "kind": "good",
                "messages": 10,
                "failing": 1,
                "failing_ratio": 0.1,
                "failures": 2,
                "dead": 0,
                "is_poison": False,
            },
        ),
    )


def test_a_kind_that_crashes_workers_is_poison_however_few_they_are(spark):
    history: ClaimResult = (*[{"kind": "k"}] * 20, {"kind": "k", "crashes": 2})

    assert pairs(poison_kinds(tables(spark, history), PipelineSettings()), "is_poison") == [(True,)]


def test_a_circuit_that_keeps_opening_and_closing_flaps(spark):
    facts = (
        change("opened", "08:00:00", "closed"),
        change("half_opened", "08:30:00", "open"),
        change("reopened", "08:31:00", "half_open"),
        change("half_opened", "09:31:00", "open"),
        change("closed", "09:32:00", "half_open"),
        change("opened", "23:00:00", "closed"),
    )

    found = conform(
        flapping_routes(tables(spark, facts=facts), PipelineSettings()), FLAPPING_ROUTES
    )

    assertDataFrameEqual(
        found,
        computed(
            spark,
            FLAPPING_ROUTES,
            {
                "circuit": "c1",
                "route": "/mail/.*",
                "opened": 2,
                "reopened": 1,
                "closed": 1,
                "changes": 6,
                "open_ms": HOUR // 2 + HOUR + HOUR,
                "is_flapping": True,
                "dt": DT,
            },
        ),
    )


def test_a_circuit_that_was_open_at_midnight_was_open_since_then(spark):
    facts = (change("closed", "03:00:00", "open"),)

    [row] = flapping_routes(tables(spark, facts=facts), PipelineSettings()).collect()

    assert (row.open_ms, row.is_flapping) == (3 * HOUR, False)
    assert midnight() + DAY > NOON


def test_a_worker_whose_beats_were_missed_or_whose_leases_expired_is_listed(spark):
    data = json.dumps({"name": "billing", "host": "h1", "beat_at": NOON - 90_000})
    facts = (
        {"kind": "worker_lost", "subject": "w-1", "data": data},
        {"kind": "worker_left", "subject": "w-2", "data": data},
    )
    attempts = (
        *times(2, outcome="expired", leased_by="w-1"),
        *times(1, outcome="crashed", leased_by="w-3"),
        *times(5, outcome="failed", leased_by="w-4"),
    )

    found = conform(
        silent_workers(tables(spark, attempts=attempts, facts=facts), PipelineSettings()),
        SILENT_WORKERS,
    )

    assertDataFrameEqual(
        found,
        computed(
            spark,
            SILENT_WORKERS,
            {
                "worker": "w-1",
                "name": "billing",
                "host": "h1",
                "lost": 1,
                "silent_ms": 90_000,
                "expired": 2,
                "crashed": 0,
                "last_at": NOON + 1,
                "dt": DT,
            },
            {"worker": "w-3", "lost": 0, "expired": 0, "crashed": 1, "last_at": NOON, "dt": DT},
        ),
    )


@pytest.mark.parametrize(
    ("beat_at", "silent_ms"), [("soon", None), (None, None), (NOON + 5_000, 0), (-(2**63), None)]
)
def test_an_impossible_last_beat_does_not_end_the_job(spark, beat_at, silent_ms):
    data = json.dumps({"name": "billing", "beat_at": beat_at})
    facts = ({"kind": "worker_lost", "subject": "w-1", "data": data},)

    [row] = silent_workers(tables(spark, facts=facts), PipelineSettings()).collect()

    assert (row.lost, row.silent_ms) == (1, silent_ms)
