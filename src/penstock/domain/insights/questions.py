"""All questions by name, with the tables that answer them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from penstock.domain.insights.answer import (
    Advice,
    Answer,
    Chart,
    CurrentState,
    SourceTable,
    SourceTables,
)
from penstock.domain.insights.breaker import breaker
from penstock.domain.insights.fleet import fleet
from penstock.domain.insights.outage import outage
from penstock.domain.insights.poison import poison
from penstock.domain.insights.starvation import starvation
from penstock.domain.insights.storage import storage

Reply = tuple[list[str], Chart | None, list[Advice]]
NOTHING_KNOWN = CurrentState()
BREAKER, FLEET = "breaker", "fleet"  # the questions whose answers have advice


class Question(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    text: str
    tables: tuple[str, ...]
    compute: Callable[[list[SourceTable], CurrentState], Reply]
    has_advice: bool = False


QUESTIONS = {
    one.name: one
    for one in (
        Question(
            name="outage",
            text="What did the outage cost?",
            tables=("outage_cost",),
            compute=lambda tables, _: (*outage(tables[0]), []),
        ),
        Question(
            name=BREAKER,
            text="Which breaker settings would have been better, and by how much?",
            tables=("breaker_tuning",),
            compute=lambda tables, now: breaker(tables[0], now.in_force),
            has_advice=True,
        ),
        Question(
            name=FLEET,
            text="Which profile should each fleet use?",
            tables=("scaling_backtest",),
            compute=lambda tables, now: fleet(tables[0], now.in_force),
            has_advice=True,
        ),
        Question(
            name="storage",
            text="When will storage be full?",
            tables=("capacity",),
            compute=lambda tables, now: (*storage(tables[0], now.disk), []),
        ),
        Question(
            name="poison",
            text="Which kinds are poison, and since which release?",
            tables=("poison_kinds", "poison_releases"),
            compute=lambda tables, _: (*poison(tables[0], tables[1]), []),
        ),
        Question(
            name="starvation",
            text="Which queues starve others?",
            tables=("starvation",),
            compute=lambda tables, _: (*starvation(tables[0]), []),
        ),
    )
}


def answer(question: Question, tables: SourceTables, now: CurrentState = NOTHING_KNOWN) -> Answer:
    """Answer from the rows of some days."""
    given = {name: tables.get(name) for name in question.tables}
    known = [table for table in given.values() if table is not None]
    if len(known) < len(given):
        missing = [name for name, table in given.items() if table is None]
        sentences, chart, advice = [_not_computed(missing)], None, list[Advice]()
    else:
        sentences, chart, advice = question.compute(known, now)
    return Answer(
        name=question.name,
        question=question.text,
        sentences=sentences,
        picture=chart,
        advice=advice,
        tables=list(question.tables),
    )


def _not_computed(missing: list[str]) -> str:
    return f"Not computed yet: run penstock pipeline run, which computes {' and '.join(missing)}."
