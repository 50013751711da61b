"""All questions by name, with the tables that answer them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from penstock.domain.insights.answer import Advice, Answer, InForce, Picture, Rows, TableRowsByName
from penstock.domain.insights.breaker import breaker
from penstock.domain.insights.fleet import fleet
from penstock.domain.insights.outage import outage
from penstock.domain.insights.poison import poison
from penstock.domain.insights.starvation import starvation
from penstock.domain.insights.storage import storage

Found = tuple[list[str], Picture | None, list[Advice]]
InForceNow = Sequence[InForce] | None  # None: not known, as in a report
BREAKER, FLEET = "breaker", "fleet"  # the questions whose answers have advice


class Question(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    text: str
    tables: tuple[str, ...]
    reply: Callable[[list[Rows], InForceNow], Found]
    has_advice: bool = False


QUESTIONS = {
    one.name: one
    for one in (
        Question(
            name="outage",
            text="What did the outage cost?",
            tables=("outage_cost",),
            reply=lambda rows, _: (*outage(rows[0]), []),
        ),
        Question(
            name=BREAKER,
            text="Which breaker settings would have been better, and by how much?",
            tables=("breaker_tuning",),
            reply=lambda rows, in_force: breaker(rows[0], in_force),
            has_advice=True,
        ),
        Question(
            name=FLEET,
            text="Which fleet profile?",
            tables=("scaling_backtest",),
            reply=lambda rows, in_force: fleet(rows[0], in_force),
            has_advice=True,
        ),
        Question(
            name="storage",
            text="When is the disk full?",
            tables=("capacity",),
            reply=lambda rows, _: (*storage(rows[0]), []),
        ),
        Question(
            name="poison",
            text="Which kinds are poison, since which release?",
            tables=("poison_kinds", "poison_releases"),
            reply=lambda rows, _: (*poison(rows[0], rows[1]), []),
        ),
        Question(
            name="starvation",
            text="Who is starving whom?",
            tables=("starvation",),
            reply=lambda rows, _: (*starvation(rows[0]), []),
        ),
    )
}


def answer(question: Question, tables: TableRowsByName, in_force: InForceNow = None) -> Answer:
    """Answer from the rows of some days; `in_force`: the settings that advice is compared with."""
    missing = [name for name in question.tables if tables.get(name) is None]
    if missing:
        sentences, picture, advice = [_not_computed(missing)], None, list[Advice]()
    else:
        rows = [tables[name] or [] for name in question.tables]
        sentences, picture, advice = question.reply(rows, in_force)
    return Answer(
        name=question.name,
        question=question.text,
        sentences=sentences,
        picture=picture,
        advice=advice,
        tables=list(question.tables),
    )


def _not_computed(missing: list[str]) -> str:
    return f"Not computed yet: run penstock pipeline run, which makes {' and '.join(missing)}."
