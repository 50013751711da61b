"""What did the outage cost?  From the table outage_cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.domain.insights.answer import Chart, SourceTable, Unit, bars
from penstock.domain.insights.wording import count_phrase, duration, instant, join_names, number
from penstock.domain.limits import MINUTE

NO_DATA = "No outages in this period."
_COLUMNS = (
    "route", "from_at", "to_at", "queue", "tenant", "late", "dead", "late_ms", "late_max_ms",
)  # fmt: skip

_Key = tuple[str | None, str | None]  # queue, tenant


class _Cost:
    __slots__ = ("dead", "late")

    def __init__(self) -> None:
        self.late = self.dead = 0

    def add(self, late: int, dead: int) -> None:
        self.late += late
        self.dead += dead

    @property
    def lost(self) -> int:
        return self.late + self.dead


def outage(table: SourceTable) -> tuple[list[str], Chart | None]:
    by_route: dict[str, set[tuple[int, int]]] = {}
    costs: dict[_Key, _Cost] = {}
    late_ms = worst = 0
    for row in table.rows(*_COLUMNS):
        by_route.setdefault(row["route"], set()).add((row["from_at"], row["to_at"]))
        cost = costs.setdefault((row["queue"], row["tenant"]), _Cost())
        cost.add(row["late"] or 0, row["dead"] or 0)
        late_ms += row["late_ms"] or 0
        worst = max(worst, row["late_max_ms"] or 0)
    if not by_route:
        return [NO_DATA], None
    sentences = _describe_periods(_longest(by_route))
    late, dead = (sum(getattr(one, name) for one in costs.values()) for name in ("late", "dead"))
    if not late + dead:
        return [*sentences, "No message was late or died because of it."], None
    if late:
        sentences.append(
            f"{count_phrase(late, 'message was', 'messages were')} late: {duration(late_ms / late)}"
            f" over the limit on average, {duration(worst)} at most."
        )
    if dead:
        sentences.append(f"{count_phrase(dead, 'message')} died.")
    return sentences + _describe_losses(costs), _chart(costs)


def merge_periods(periods: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Begins and ends in order of time; periods with less than a minute between them are one."""
    found: list[tuple[int, int]] = []
    for from_at, to_at in sorted(periods):
        if found and from_at - found[-1][1] < MINUTE:
            found[-1] = found[-1][0], max(found[-1][1], to_at)
        else:
            found.append((from_at, to_at))
    return found


def _longest(by_route: Mapping[str, Iterable[tuple[int, int]]]) -> list[tuple[str, int, int]]:
    """Route, begin and end; an outage over midnight is in the rows of two days."""
    found = [(route, *one) for route, them in by_route.items() for one in merge_periods(them)]
    return sorted(found, key=lambda one: (one[1] - one[2], one))


def _describe_periods(periods: list[tuple[str, int, int]]) -> list[str]:
    longest = [
        f"{route} for {duration(to_at - from_at)} from {instant(from_at)}"
        for route, from_at, to_at in periods[:3]
    ]
    if len(periods) == 1:
        return [f"One outage: {longest[0]}."]
    more = [""] * (len(periods) - len(longest))
    return [f"{number(len(periods))} outages: {join_names([*longest, *more], most=3)}."]


def _describe_losses(costs: Mapping[_Key, _Cost]) -> list[str]:
    sentences = []
    for place, name in enumerate(("queue", "tenant")):
        ranked = [f"{key} ({_cost(one)})" for key, one in _rank(costs, place)]
        if ranked:
            sentences.append(f"By {name}: {join_names(ranked)}.")
    return sentences


def _rank(costs: Mapping[_Key, _Cost], place: int) -> list[tuple[str, _Cost]]:
    """The most expensive first, without those that lost nothing."""
    found: dict[str, _Cost] = {}
    for key, one in costs.items():
        name = key[place]
        if name is not None and one.lost:
            found.setdefault(name, _Cost()).add(one.late, one.dead)
    return sorted(found.items(), key=lambda one: (-one[1].lost, one[0]))


def _cost(one: _Cost) -> str:
    parts = [f"{number(one.late)} late"] if one.late else []
    parts += [f"{number(one.dead)} dead"] if one.dead else []
    return ", ".join(parts)


def _chart(costs: Mapping[_Key, _Cost]) -> Chart | None:
    values: list[tuple[str, tuple[Any, ...]]] = []
    for (queue, tenant), one in costs.items():
        if one.lost:
            name = str(queue) if tenant is None else f"{queue}, {tenant}"
            values.append((name, (one.late, one.dead)))
    values.sort(key=lambda one: (-sum(one[1]), one[0]))
    return bars("Messages that outages cost", Unit.COUNT, ("late", "dead"), values)
