"""Replays of several days, compared: which candidate, against which baseline, on which days."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from penstock.domain.insights.answer import Advice, BacktestFigure, Row, Rows, days_of

NOW = "now"  # the candidate that the pipeline's settings name as the one in force
NOT_REPLAYED = "the settings in force were not replayed"

Key = tuple[Any, ...]


class Comparison(msgspec.Struct, frozen=True):
    """`before` and `after` are the rows of the same days; `before` is empty if not replayed."""

    settings: dict[str, int]
    in_force: dict[str, int]
    is_change: bool
    days: int
    before: list[Row]
    after: list[Row]

    def advice(self, target: str, backtest: list[BacktestFigure], *, same: str, how: str) -> Advice:
        """`same`: the refusal if nothing changes; `how`: how to have the baseline replayed."""
        refusal = None
        if not self.is_change:
            refusal = same
        elif not self.before:
            refusal = f"{NOT_REPLAYED[0].upper()}{NOT_REPLAYED[1:]}: {how}."
        return Advice(
            target=target,
            settings=self.settings,
            before=self.in_force,
            days=self.days,
            backtest=backtest,
            refusal=refusal,
        )


def compare(
    rows: Rows,
    names: Sequence[str],
    in_force: Mapping[str, int] | None,
    better: Callable[[list[Row]], Key],
    prefer: Callable[[Row], Key] = lambda row: (),
    *,
    room: str | None = None,
) -> Comparison | None:
    """The best candidate of one route or queue, on all days on which the baseline was replayed.

    `in_force` None: the newest baseline of the pipeline.  None: there is nothing to compare.
    `better` orders candidates by their rows, the best first.  A baseline as good as any wins; among
    other equals `prefer` decides.  `room` names a setting that candidates have just enough of on
    each day: more of it changes nothing, so it does not tell candidates apart.
    """
    baseline = dict(in_force) if in_force is not None else _newest_baseline(rows, names)
    if baseline is None:
        return None
    exact = [name for name in names if name != room]
    groups = _groups(rows, exact, room)
    own = _own(groups, baseline, exact, room)
    days = days_of(groups[own] if own is not None else rows)
    candidates = _on(groups, days)
    if len(candidates) < 2:  # candidates change with the load: compare those of one day
        days = days[-1:]
        candidates = _on(groups, days)
    best = min(
        candidates,
        key=lambda key: (better(candidates[key]), key != own, prefer(candidates[key][0]), str(key)),
    )
    is_change = best != own
    settings = {name: max(row[name] for row in candidates[best]) for name in names}
    return Comparison(
        settings=settings if is_change else baseline,
        in_force=baseline,
        is_change=is_change,
        days=len(days),
        before=[] if own is None else candidates.get(own, []),
        after=candidates[best],
    )


def _newest_baseline(rows: Iterable[Row], names: Sequence[str]) -> dict[str, int] | None:
    found = [row for row in rows if row["candidate"] == NOW]
    if not found:
        return None
    newest = max(found, key=lambda row: str(row["dt"]))
    return {name: newest[name] for name in names}


def _groups(rows: Iterable[Row], exact: Sequence[str], room: str | None) -> dict[Key, list[Row]]:
    """Rows by settings; the room of the baseline is its own, and not just enough."""
    found: dict[Key, list[Row]] = {}
    for row in rows:
        own_room = row[room] if room is not None and row["candidate"] == NOW else None
        found.setdefault((*(row[name] for name in exact), own_room), []).append(row)
    return found


def _own(
    groups: Mapping[Key, list[Row]],
    baseline: Mapping[str, int],
    exact: Sequence[str],
    room: str | None,
) -> Key | None:
    """The candidate that behaves as the settings in force do; that of the most days."""
    wanted = tuple(baseline.get(name) for name in exact)
    fits = [
        key for key in groups if key[:-1] == wanted and _has_room(key, groups[key], baseline, room)
    ]
    return max(fits, key=lambda key: (len(groups[key]), str(key)), default=None)


def _has_room(key: Key, rows: list[Row], baseline: Mapping[str, int], room: str | None) -> bool:
    if room is None:
        return True
    if key[-1] is not None:
        return bool(key[-1] == baseline[room])
    return all(baseline[room] >= row[room] for row in rows)


def _on(groups: Mapping[Key, list[Row]], days: list[str]) -> dict[Key, list[Row]]:
    """The candidates that were replayed on all of these days, with their rows of these."""
    found = {key: [r for r in rows if r["dt"] in days] for key, rows in groups.items()}
    return {key: rows for key, rows in found.items() if len({r["dt"] for r in rows}) == len(days)}
