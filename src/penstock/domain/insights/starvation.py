"""Who is starving whom?  From the table starvation."""

from __future__ import annotations

from typing import Any

from penstock.domain.insights.answer import (
    MAX_DRAWN,
    MAX_NAMED,
    Chart,
    Row,
    SourceTable,
    Unit,
    bars,
)
from penstock.domain.insights.wording import count_phrase, duration, number, percent

NO_DATA = (
    "No queue starves another: no message that a registered worker claimed waited longer than its "
    "target in this period."
)
DOMINANT_SHARE = 0.5  # of the working time: it starves others


_COLUMNS = (
    "pool", "queue", "tenant", "late", "limit_ms", "wait_max_ms", "own_share",
    "by_queue", "by_tenant", "share", "rank",
)  # fmt: skip

_QueueAndTenant = tuple[Any, Any]  # queue, tenant


class _Victim:
    """One that waited.  Days count by how many messages were late on them."""

    __slots__ = ("_by", "_own", "late", "limit_ms", "wait_max_ms", "who")

    def __init__(self, who: _QueueAndTenant) -> None:
        self.who = who
        self.late = self.limit_ms = self.wait_max_ms = 0
        self._own = 0.0
        self._by: dict[_QueueAndTenant, float] = {}

    def add(self, row: Row) -> None:
        if row["rank"] == 1:  # every day has a row for each of those with the largest shares
            self.late += row["late"] or 0
            self._own += row["late"] * row["own_share"]
        other = row["by_queue"], row["by_tenant"]
        self._by[other] = self._by.get(other, 0.0) + row["late"] * row["share"]
        self.limit_ms = max(self.limit_ms, row["limit_ms"] or 0)
        self.wait_max_ms = max(self.wait_max_ms, row["wait_max_ms"] or 0)

    @property
    def main_cause(self) -> _QueueAndTenant:
        """The queue and tenant with the largest share of the working time."""
        return max(self._by, key=lambda who: (self._by[who], str(who)))

    @property
    def share(self) -> float:
        return self._by[self.main_cause] / (self.late or 1)

    @property
    def own_share(self) -> float:
        return self._own / (self.late or 1)


def starvation(table: SourceTable) -> tuple[list[str], Chart | None]:
    found: dict[tuple[Any, ...], _Victim] = {}
    for row in table.rows(*_COLUMNS):
        who = row["queue"], row["tenant"]
        found.setdefault((row["pool"], *who), _Victim(who)).add(row)
    if not found:
        return [NO_DATA], None
    victims = [found[key] for key in sorted(found, key=lambda key: (-found[key].late, str(key)))]
    sentences = [_sentence(one) for one in victims[:MAX_NAMED]]
    if len(victims) > MAX_NAMED:
        more = f"{number(len(victims) - MAX_NAMED)} more queues or tenants waited too long."
        sentences.append(more)
    values = [
        (
            f"{_label(*one.who)} ← {_label(*one.main_cause)}",
            (round(100 * one.share, 1), round(100 * one.own_share, 1)),
        )
        for one in victims[:MAX_DRAWN]
    ]
    series = ("working time of the other", "own working time")
    return sentences, bars("Working time while messages waited", Unit.PERCENT, series, values)


def _sentence(one: _Victim) -> str:
    victim, other = _label(*one.who), _label(*one.main_cause)
    share, own = one.share, one.own_share
    waited = (
        f"{count_phrase(one.late, 'message')} of {victim} waited longer than "
        f"{duration(one.limit_ms)} (up to {duration(one.wait_max_ms)})"
    )
    if share >= DOMINANT_SHARE and share > own:
        return (
            f"{other} took {percent(share)} of the workers' time and {victim} {percent(own)}, "
            f"while {waited}."
        )
    if own >= DOMINANT_SHARE:
        return (
            f"{waited}, but the workers were busy with {victim} itself for "
            f"{percent(own)} of the time: it needs more workers."
        )
    return (
        f"{waited}, but no other queue or tenant took most of the workers' time meanwhile "
        f"({other}: {percent(share)}): there are not enough workers."
    )


def _label(queue: str, tenant: str | None) -> str:
    return queue if tenant is None else f"{tenant} in {queue}"
