"""What did the outage cost?  From the table outage_cost."""

from __future__ import annotations

from typing import Any

from penstock.domain.insights.answer import Picture, Row, Rows, Unit, added, bars, grouped, largest
from penstock.domain.insights.wording import counted, duration, instant, listed, number
from penstock.domain.limits import MINUTE

NONE = "No outage in these days."


def outage(rows: Rows) -> tuple[list[str], Picture | None]:
    periods = _periods(rows)
    if not periods:
        return [NONE], None
    sentences = _what(periods)
    late, dead = added(rows, "late"), added(rows, "dead")
    if not late + dead:
        return [*sentences, "No message was late or died because of it."], None
    if late:
        worst, average = largest(rows, "late_max_ms") or 0, added(rows, "late_ms") / late
        sentences.append(
            f"{counted(late, 'message was', 'messages were')} late: {duration(average)} over the "
            f"limit on average, {duration(worst)} at most."
        )
    if dead:
        sentences.append(f"{counted(dead, 'message')} died.")
    sentences += _where(rows)
    return sentences, _picture(rows)


def _periods(rows: Rows) -> list[tuple[str, int, int]]:
    """Route, begin and end; an outage over midnight is in the rows of two days."""
    found: list[tuple[str, int, int]] = []
    for route, from_at, to_at in sorted({(r["route"], r["from_at"], r["to_at"]) for r in rows}):
        if found and found[-1][0] == route and from_at - found[-1][2] < MINUTE:
            found[-1] = (route, found[-1][1], max(found[-1][2], to_at))
        else:
            found.append((route, from_at, to_at))
    return sorted(found, key=lambda one: (one[1] - one[2], one))


def _what(periods: list[tuple[str, int, int]]) -> list[str]:
    longest = [
        f"{route} for {duration(to_at - from_at)} from {instant(from_at)}"
        for route, from_at, to_at in periods
    ]
    if len(periods) == 1:
        return [f"One outage: {longest[0]}."]
    return [f"{number(len(periods))} outages: {listed(longest, most=3)}."]


def _where(rows: Rows) -> list[str]:
    sentences = []
    queues = _ranked(rows, "queue")
    if queues:
        sentences.append(f"By queue: {listed([_cost(name, them) for name, them in queues])}.")
    tenants = _ranked([row for row in rows if row.get("tenant") is not None], "tenant")
    if tenants:
        sentences.append(f"By tenant: {listed([_cost(name, them) for name, them in tenants])}.")
    return sentences


def _ranked(rows: Rows, name: str) -> list[tuple[str, list[Row]]]:
    """The most expensive first, without those that lost nothing."""
    found = [(key, them) for (key,), them in grouped(rows, name).items() if key is not None]
    costly = [(key, them) for key, them in found if _lost(them)]
    return sorted(costly, key=lambda one: (-_lost(one[1]), one[0]))


def _lost(rows: Rows) -> int:
    return added(rows, "late") + added(rows, "dead")


def _cost(name: str, rows: Rows) -> str:
    late, dead = added(rows, "late"), added(rows, "dead")
    parts = [f"{number(late)} late"] if late else []
    parts += [f"{number(dead)} dead"] if dead else []
    return f"{name} ({', '.join(parts)})"


def _picture(rows: Rows) -> Picture | None:
    costs: list[tuple[str, tuple[Any, ...]]] = []
    for (queue, tenant), them in grouped(rows, "queue", "tenant").items():
        if _lost(them):
            name = queue if tenant is None else f"{queue}, {tenant}"
            costs.append((name, (added(them, "late"), added(them, "dead"))))
    costs.sort(key=lambda one: (-sum(one[1]), one[0]))
    return bars("Messages that outages cost", Unit.COUNT, ("late", "dead"), costs)
