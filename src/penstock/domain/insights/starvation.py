"""Who is starving whom?  From the table starvation."""

from __future__ import annotations

from typing import Any

from penstock.domain.insights.answer import (
    MAX_NAMED,
    Picture,
    Row,
    Rows,
    Unit,
    added,
    bars,
    grouped,
    largest,
)
from penstock.domain.insights.wording import counted, duration, number, percent

NONE = (
    "No queue starves another: no message that a registered worker claimed waited longer than its "
    "target in these days."
)
MUCH = 0.5  # a share of the working time that starves others


def starvation(rows: Rows) -> tuple[list[str], Picture | None]:
    victims = [
        (key, them, _by(them)) for key, them in grouped(rows, "pool", "queue", "tenant").items()
    ]
    if not victims:
        return [NONE], None
    victims.sort(key=lambda one: (-_late(one[1]), str(one[0])))
    sentences = [_sentence(key[1], key[2], them, by) for key, them, by in victims]
    if len(sentences) > MAX_NAMED:
        more = f"{number(len(sentences) - MAX_NAMED)} more queues or tenants waited too long."
        sentences = [*sentences[:MAX_NAMED], more]
    values = [
        (
            f"{_named(key[1], key[2])} ← {_named(*by[0])}",
            (round(100 * by[1], 1), round(100 * by[2], 1)),
        )
        for key, _, by in victims
    ]
    series = ("working time of the other", "own working time")
    return sentences, bars("Working time while messages waited", Unit.PERCENT, series, values)


def _by(rows: list[Row]) -> tuple[tuple[str, str | None], float, float]:
    """Who had the largest share of the working time, that share, and the own one.

    Days count by how many messages were late on them.
    """
    total = _late(rows)
    shares = {
        who: sum(row["late"] * row["share"] for row in them) / total
        for who, them in grouped(rows, "by_queue", "by_tenant").items()
    }
    queue, tenant = max(shares, key=lambda who: (shares[who], str(who)))
    own = sum(row["late"] * row["own_share"] for row in rows if row["rank"] == 1) / total
    return (queue, tenant), shares[queue, tenant], own


def _late(rows: list[Row]) -> int:
    """Of each day once: every day has a row for each of those with the largest shares."""
    return added([row for row in rows if row["rank"] == 1], "late") or 1


def _sentence(
    queue: str, tenant: str | None, rows: list[Row], by: tuple[tuple[Any, ...], float, float]
) -> str:
    other, share, own = by
    limit, worst = largest(rows, "limit_ms") or 0, largest(rows, "wait_max_ms") or 0
    late = added([row for row in rows if row["rank"] == 1], "late")
    waited = (
        f"{counted(late, 'message')} of {_named(queue, tenant)} waited longer than "
        f"{duration(limit)} (up to {duration(worst)})"
    )
    if share >= MUCH and share > own:
        return (
            f"{_named(*other)} starves {_named(queue, tenant)}: it took {percent(share)} of the "
            f"workers' time while {waited}, which got {percent(own)}."
        )
    if own >= MUCH:
        return (
            f"{waited}, but the workers were busy with {_named(queue, tenant)} itself for "
            f"{percent(own)} of the time: it needs more workers."
        )
    return (
        f"{waited}, but no other queue or tenant took most of the workers' time meanwhile "
        f"({_named(*other)}: {percent(share)}): the workers are too few for all."
    )


def _named(queue: str, tenant: str | None) -> str:
    return queue if tenant is None else f"{tenant} in {queue}"
