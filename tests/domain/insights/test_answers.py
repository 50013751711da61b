"""Answers in words: right for outages, growth, poison and starvation, and for odd tables."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.insights.answer import Answer, ChartKind, CurrentState, Disk, Unit
from penstock.domain.insights.questions import NOTHING_KNOWN, QUESTIONS, answer
from penstock.domain.insights.wording import (
    count_phrase,
    duration,
    join_names,
    percent,
    size,
    value_text,
)
from penstock.domain.limits import DAY, HOUR, MINUTE
from tests.domain.insights.rows import (
    DAY_1,
    DAY_2,
    DAY_3,
    Row,
    RowsAsTable,
    cost,
    kind,
    load,
    release,
    starved,
)


def ask(name: str, *tables: list[Row], now: CurrentState = NOTHING_KNOWN) -> Answer:
    question = QUESTIONS[name]
    given = dict(zip(question.tables, map(RowsAsTable, tables), strict=True))
    return answer(question, given, now)


def words(found: Answer) -> str:
    return " ".join(found.sentences)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_table_that_was_never_computed_is_named(name: str) -> None:
    found = answer(QUESTIONS[name], {})

    assert "Not computed yet: run penstock pipeline run" in words(found)
    assert all(table in words(found) for table in QUESTIONS[name].tables)
    assert found.picture is None


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("outage", "No outages in this period."),
        ("breaker", "No calls to any route in this period."),
        ("fleet", "No messages were processed in this period."),
        ("storage", "No messages in this period."),
        ("poison", "No poison kinds in this period."),
        (
            "starvation",
            "No queue starves another: no message that a registered worker claimed",
        ),
    ],
)
def test_an_empty_table_is_an_answer_too(name: str, sentence: str) -> None:
    found = ask(name, *([] for _ in QUESTIONS[name].tables))

    assert words(found).startswith(sentence)
    assert found.picture is None
    assert found.advice == []


# ---- the outage


def test_an_outage_costs_late_and_dead_messages_by_queue_and_tenant() -> None:
    found = ask(
        "outage",
        [
            cost("orders", tenant="acme", late=1_200, late_ms=1_200 * HOUR, late_max_ms=2 * HOUR),
            cost("orders", tenant="beta", late=34, late_ms=34 * MINUTE, late_max_ms=HOUR),
            cost("hooks", dead=5),
            cost("audit"),
        ],
    )

    assert found.sentences == [
        "One outage: /shop/.* for 1 h 30 min from 2030-01-01 10:00 UTC.",
        "1,234 messages were late: 58 min over the limit on average, 2 h at most.",
        "5 messages died.",
        "By queue: orders (1,234 late) and hooks (5 dead).",
        "By tenant: acme (1,200 late) and beta (34 late).",
    ]
    assert found.picture is not None
    assert found.picture.series == ["late", "dead"]
    assert [(p.name, p.values) for p in found.picture.points] == [
        ("orders, acme", [1_200, 0]),
        ("orders, beta", [34, 0]),
        ("hooks", [0, 5]),
    ]


def test_an_outage_without_victims_is_named_without_a_picture() -> None:
    found = ask("outage", [cost(None, messages=0)])

    assert found.sentences[1:] == ["No message was late or died because of it."]
    assert found.picture is None


def test_an_outage_over_midnight_is_one_and_the_longest_is_named_first() -> None:
    found = ask(
        "outage",
        [
            cost("a", to_at=cost("a")["from_at"] + MINUTE, route="/short"),
            cost("a", late=1, late_ms=1, late_max_ms=1),
            cost(
                "a",
                dt=DAY_2,
                from_at=cost("a")["to_at"] + MINUTE - 1,
                to_at=cost("a")["from_at"] + DAY,
            ),
        ],
    )

    assert found.sentences[0] == (
        "2 outages: /shop/.* for 1 d from 2030-01-01 10:00 UTC and /short for 1 min from "
        "2030-01-01 10:00 UTC."
    )
    assert found.sentences[1].startswith("1 message was late: 1 ms over the limit")


# ---- storage


def test_the_day_on_which_the_storage_is_full_is_named_and_the_growth_drawn() -> None:
    found = ask(
        "storage",
        [
            load(stored_end=1024**2),
            load(dt=DAY_2, stored_end=2 * 1024**2, days_until_full=3.5, days_offline=1.5),
            load("mail", dt=DAY_2, backlog_growth=1024),
            load("slow", dt=DAY_2, backlog_growth=-5),
        ],
    )

    assert found.sentences == [
        "In 3.5 days, on 2030-01-05, at the growth of the last four weeks.",
        "Live messages took 2 MiB of 1 GiB at the end of 2030-01-02.",
        "The queue mail grows most, by 1 MiB a day.",
        "If all workers stopped, it would be full after 36 hours.",
        "This counts the bodies of live messages; history, indexes and logs come on top.",
    ]
    assert found.picture is not None
    assert (found.picture.kind, found.picture.unit) == (ChartKind.LINES, Unit.BYTES)
    assert [p.name for p in found.picture.points] == [
        DAY_1,
        DAY_2,
        DAY_3,
        *(f"2030-01-0{n}" for n in (4, 5, 6)),
    ]
    assert found.picture.points[-1].values == [None, 1024**3, 1024**3]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"storage_bytes": None},
            "The size of the storage is not known: set pipeline.storage_bytes.",
        ),
        ({}, "Never at the current rate: the total backlog is not growing."),
        ({"days_until_full": 0.0, "stored_end": None}, "It is full."),
        ({"days_until_full": 0.1}, "In 2 hours, on 2030-01-01, at the growth"),
        ({"days_until_full": 1e300}, "on 3029-"),
    ],
)
def test_the_storage_may_be_unknown_full_or_not_grow(given: Row, sentence: str) -> None:
    found = ask("storage", [load(**given)])

    assert sentence in words(found)


def test_a_queue_that_finished_nothing_grows_by_the_mean_payload_of_all() -> None:
    found = ask(
        "storage",
        [
            load(payload=1000.0, backlog_growth=30),
            load("stuck", payload=None, backlog_growth=20),
            load("mail", payload=100.0, backlog_growth=50),
            load("empty", payload=0.0, backlog_growth=90),
        ],
    )

    assert "The queue stuck grows most, by 19.5 KiB a day." in found.sentences


def test_a_server_reports_the_size_of_its_store_and_the_free_space() -> None:
    disk = Disk(used_bytes=3 * 1024**3, free_bytes=40 * 1024**3)
    said = "All files of the store take 3 GiB now; 40 GiB are free on its disk."

    for rows in ([], [load()]):
        found = ask("storage", rows, now=CurrentState(disk=disk))

        assert found.sentences[-1] == said


# ---- poison


def test_a_kind_is_poison_since_the_first_release_that_fails() -> None:
    found = ask(
        "poison",
        [
            kind(DAY_1, failing=2, failing_ratio=0.02, is_poison=False),
            kind(DAY_2),
            kind(DAY_3, messages=300, failing=255),
        ],
        [
            release("2.3", DAY_1, failing=2, is_poison=False),
            release("2.4", DAY_2),
            release("2.4", DAY_3),
        ],
    )

    assert found.sentences == [
        "refund (queue billing): poison since release 2.4 (2030-01-02; with release 2.3, 2 % "
        "failed). 85 % of 400 messages failed; most common error: ValueError: no such currency."
    ]
    assert found.picture is not None
    assert [p.values for p in found.picture.points] == [[2.0], [85.0], [85.0]]


def test_a_kind_of_another_queue_with_the_same_name_is_another_one() -> None:
    found = ask("poison", [kind(DAY_1), kind(DAY_1, queue="shop", failing=1, is_poison=False)], [])

    assert found.sentences[0].startswith("refund (queue billing): poison since 2030-01-01.")
    assert not any("shop" in sentence for sentence in found.sentences)


def test_without_releases_the_day_is_named_and_how_to_get_releases() -> None:
    found = ask(
        "poison", [kind(DAY_1, kind=None, common_error=None, crashes=3)], [release(None, DAY_1)]
    )

    assert found.sentences[0] == (
        "Messages without a kind (queue billing): poison since 2030-01-01. 85 % of 100 messages "
        "failed, and workers crashed 3 times."
    )
    assert "--label release=VERSION" in found.sentences[1]


def test_a_kind_that_is_no_longer_poison_was_so_until_a_day() -> None:
    found = ask(
        "poison", [kind(DAY_1), kind(DAY_2, is_poison=False, failing=1, failing_ratio=0.01)], []
    )

    assert "refund (queue billing): poison from 2030-01-01 to 2030-01-01." in words(found)


# ---- starvation


def test_the_queue_that_takes_the_workers_time_starves_the_one_that_waits() -> None:
    found = ask(
        "starvation", [starved(), starved(by_queue="audit", by_tenant=None, share=0.01, rank=2)]
    )

    assert found.sentences == [
        "acme in reports took 98 % of the workers' time and mail 2 %, while 120 messages of mail "
        "waited longer than 1 min (up to 9 min)."
    ]
    assert found.picture is not None
    assert [(p.name, p.values) for p in found.picture.points] == [
        ("mail ← acme in reports", [98.0, 2.0])
    ]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"share": 0.3, "own_share": 0.7}, "itself for 70 % of the time: it needs more workers."),
        ({"share": 0.3, "own_share": 0.1}, "there are not enough workers."),
    ],
)
def test_long_waits_may_have_other_causes_than_another_queue(given: Row, sentence: str) -> None:
    assert sentence in words(ask("starvation", [starved(**given)]))


# ---- wording


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (350, "350 ms"),
        (12_500, "12.5 s"),
        (59_990, "60 s"),
        (90_000, "1.5 min"),
        (90 * MINUTE, "1 h 30 min"),
        (DAY, "1 d"),
        (2 * DAY + 3 * HOUR, "2 d 3 h"),
    ],
)
def test_durations_have_two_units_at_most(ms: int, text: str) -> None:
    assert duration(ms) == text


def test_counts_shares_sizes_and_lists_read_naturally() -> None:
    assert [count_phrase(n, "message") for n in (0, 1, 1_234)] == [
        "0 messages",
        "1 message",
        "1,234 messages",
    ]
    assert [percent(x) for x in (0.0, 0.0012, 0.5, 0.9995, 1.0)] == [
        "0 %",
        "0.12 %",
        "50 %",
        "99.95 %",
        "100 %",
    ]
    assert [size(x) for x in (1, 900, 2048, 3 * 1024**3)] == [
        "1 byte",
        "900 bytes",
        "2 KiB",
        "3 GiB",
    ]
    assert [join_names([]), join_names(["a"]), join_names(["a", "b"])] == ["", "a", "a and b"]
    assert join_names(["a", "b", "c"], most=2) == "a, b and 1 more"
    units: list[tuple[Any, Unit, str]] = [
        (None, Unit.COUNT, "unknown"),
        (2.5, Unit.HOURS, "2.5 h"),
        (12.0, Unit.PERCENT, "12 %"),
    ]
    assert [value_text(value, unit) for value, unit, _ in units] == [text for *_, text in units]
