"""Replays of several days, compared: which candidate, against which baseline, on which days."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from penstock.domain.insights.answer import Row, Rows, days_of, grouped

NOW = "now"  # the candidate that the pipeline's settings name as the one in force
NOT_REPLAYED = "the settings in force were not replayed"

Key = tuple[Any, ...]


class Comparison(msgspec.Struct, frozen=True):
    """`before` and `after` are the rows of the same days; `before` is empty if not replayed."""

    settings: dict[str, int]
    in_force: dict[str, int]
    days: int
    before: list[Row]
    after: list[Row]

    @property
    def is_change(self) -> bool:
        return self.settings != self.in_force


def compare(
    rows: Rows,
    names: Sequence[str],
    in_force: Mapping[str, int] | None,
    better: Callable[[list[Row]], Key],
    prefer: Callable[[Row], Key] = lambda row: (),
) -> Comparison | None:
    """The best candidate of one route or queue, on all days on which the baseline was replayed.

    `in_force` None: the newest baseline of the pipeline.  None: there is nothing to compare.
    `better` orders candidates by their rows, the best first.  A baseline as good as any wins; among
    other equals `prefer` decides.
    """
    baseline = dict(in_force) if in_force is not None else _newest_baseline(rows, names)
    if baseline is None:
        return None
    by_settings = grouped(rows, *names)
    own = tuple(baseline.get(name) for name in names)
    days = days_of(by_settings.get(own) or rows)
    candidates = _on(by_settings, days)
    if len(candidates) < 2:  # candidates change with the load: compare those of one day
        days = days[-1:]
        candidates = _on(by_settings, days)
    best = min(
        candidates,
        key=lambda key: (better(candidates[key]), key != own, prefer(candidates[key][0]), key),
    )
    return Comparison(
        settings=dict(zip(names, best, strict=True)),
        in_force=baseline,
        days=len(days),
        before=candidates.get(own, []),
        after=candidates[best],
    )


def _newest_baseline(rows: Iterable[Row], names: Sequence[str]) -> dict[str, int] | None:
    found = [row for row in rows if row["candidate"] == NOW]
    if not found:
        return None
    newest = max(found, key=lambda row: str(row["dt"]))
    return {name: newest[name] for name in names}


def _on(by_settings: Mapping[Key, list[Row]], days: list[str]) -> dict[Key, list[Row]]:
    """The candidates that were replayed on all of these days, with their rows of these."""
    found = {key: [r for r in rows if r["dt"] in days] for key, rows in by_settings.items()}
    return {key: rows for key, rows in found.items() if len({r["dt"] for r in rows}) == len(days)}
