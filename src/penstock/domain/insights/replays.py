"""Replays of several days, compared: which candidate, against which baseline, on which days.

A table of replays has a row per candidate, day and subject: a route or a queue.  It is read three
times, so that memory holds sums by candidate and never the rows of all days.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import msgspec

from penstock.domain.insights.answer import Advice, BacktestFigure, Row, SourceTable

NOW = "now"  # the candidate that the pipeline's settings name as the one in force
NOT_REPLAYED = "The settings in force were not replayed"
UNKNOWN_GAIN = "The gain is unknown because the current settings were not replayed."

Key = tuple[Any, ...]
Settings = Mapping[str, int]
Baselines = Callable[[str], Sequence[Settings | None]]


class ReplayRules(msgspec.Struct, frozen=True, kw_only=True):
    """How the candidates of a table are distinguished and ranked.

    `ranking` and `tie_breaker` order candidates, the best first, by the totals of their days.
    """

    subject: str  # the column of the route or queue
    settings: tuple[str, ...]
    # Candidates have just enough of it on each day: more of it changes nothing, so it does not
    # distinguish them.
    capacity_setting: str | None = None
    sums: tuple[str, ...]
    maxima: tuple[str, ...]
    newest: tuple[str, ...] = ()  # columns whose value on the newest day counts
    ranking: Callable[[Row], Key]
    tie_breaker: Callable[[Row], Key] = lambda total: ()


class Comparison(msgspec.Struct, frozen=True):
    """`before` and `after`: totals of the same days; `before` is None if not replayed."""

    settings: dict[str, int]
    in_force: dict[str, int]
    is_change: bool
    days: int
    before: Row | None
    after: Row

    def advice(self, target: str, backtest: list[BacktestFigure], *, same: str, how: str) -> Advice:
        """`same`: the refusal if nothing changes; `how`: how to have the baseline replayed."""
        refusal = None
        if not self.is_change:
            refusal = same
        elif self.before is None:
            refusal = f"{NOT_REPLAYED}: {how}."
        return Advice(
            target=target,
            settings=self.settings,
            before=self.in_force,
            days=self.days,
            backtest=backtest,
            refusal=refusal,
        )


def compare(
    table: SourceTable, rules: ReplayRules, baselines: Baselines
) -> dict[str, list[Comparison | None]]:
    """The best candidate per subject, on all days on which the baseline was replayed.

    `baselines`: the settings in force of a subject, once or several times; None: the newest
    baseline of the pipeline.  There is one comparison for each; None: there is nothing to compare.
    A baseline as good as any wins.
    """
    newest = _newest_baselines(table, rules)
    read = _RowReader(rules)
    bits: dict[str, int] = {}  # days, the newest first
    found: dict[str, list[_Subject | None]] = {}
    for row in table.rows(rules.subject, "candidate", *rules.settings):
        name = row[rules.subject]
        if name not in found:
            given = (newest.get(name) if one is None else one for one in baselines(name))
            found[name] = [None if one is None else _Subject(rules, read, one) for one in given]
        bit = bits.setdefault(row["dt"], 1 << len(bits))
        for one in found[name]:
            if one is not None:
                one.see(row, bit)
    for one in _known_subjects(found.values()):
        one.choose_days()
    columns = dict.fromkeys((*rules.settings, *rules.sums, *rules.maxima, *rules.newest))
    for row in table.rows(rules.subject, "candidate", *columns):
        for one in found[row[rules.subject]]:
            if one is not None:
                one.add(row, bits[row["dt"]])
    return {
        name: [None if one is None else one.comparison() for one in subjects]
        for name, subjects in found.items()
    }


def _newest_baselines(table: SourceTable, rules: ReplayRules) -> dict[str, Settings]:
    found: dict[str, Settings] = {}
    for row in table.rows(rules.subject, "candidate", *rules.settings, candidate=[NOW]):
        if row[rules.subject] not in found:
            found[row[rules.subject]] = {name: row[name] for name in rules.settings}
    return found


def _known_subjects(subjects: Iterable[Sequence[_Subject | None]]) -> Iterable[_Subject]:
    return (one for them in subjects for one in them if one is not None)


class _RowReader:
    """Takes what counts from a row: there may be millions of them."""

    def __init__(self, rules: ReplayRules) -> None:
        self._capacity = rules.capacity_setting
        self.exact = _values(name for name in rules.settings if name != self._capacity)
        self.newest = _values(rules.newest)
        self.sums = _values(rules.sums)
        self.maxima = _values((*rules.maxima, *rules.settings))

    def key(self, row: Row) -> Key:
        """The capacity of the pipeline's baseline is its own, and not just enough."""
        if self._capacity is None or row["candidate"] != NOW:
            return self.exact(row), None
        return self.exact(row), row[self._capacity]


def _values(names: Iterable[str]) -> Callable[[Row], tuple[Any, ...]]:
    wanted = list(names)
    if len(wanted) > 1:
        return itemgetter(*wanted)
    return lambda row: tuple(row[name] for name in wanted)


class _Subject:
    """A route or queue with one baseline.  Sets of days are integers with a bit per day."""

    __slots__ = (
        "_baseline", "_baseline_keys", "_candidates", "_days", "_exact", "_fits", "_last", "_read",
        "_rules", "_seen",
    )  # fmt: skip

    def __init__(self, rules: ReplayRules, read: _RowReader, baseline: Settings) -> None:
        self._rules = rules
        self._read = read
        self._baseline = {name: baseline[name] for name in rules.settings}
        self._exact = read.exact(baseline)
        self._seen = 0  # the days with rows
        # The candidates that may behave as the baseline does, with their days: the replay of the
        # pipeline's baseline, and others with just enough capacity.
        self._baseline_keys: dict[Key, int] = {}
        self._fits = True  # the baseline has enough capacity for the others on every day
        self._candidates: dict[Key, _Candidate] = {}

    def see(self, row: Row, bit: int) -> None:
        self._seen |= bit
        if self._read.exact(row) != self._exact:
            return
        key, setting = self._read.key(row), self._rules.capacity_setting
        if setting is not None:
            if key[-1] is None:
                self._fits &= row[setting] <= self._baseline[setting]
            elif key[-1] != self._baseline[setting]:
                return
        self._baseline_keys[key] = self._baseline_keys.get(key, 0) | bit

    def choose_days(self) -> None:
        """Those on which the baseline was replayed, by the candidate that has most of them."""
        own = {
            key: days
            for key, days in self._baseline_keys.items()
            if key[-1] is not None or self._fits
        }
        best = max(own, key=lambda key: (own[key].bit_count(), str(key)), default=None)
        self._baseline_keys = {} if best is None else {best: own[best]}
        self._days = self._seen if best is None else own[best]
        self._last = self._days & -self._days

    def add(self, row: Row, bit: int) -> None:
        """Rows come newest day first: a candidate without the last day cannot have all days."""
        if not bit & self._days:
            return
        key = self._read.key(row)
        candidate = self._candidates.get(key)
        if candidate is not None:
            candidate.add(self._read, row, bit)
        elif bit == self._last:
            self._candidates[key] = _Candidate(self._read, row, bit)

    def comparison(self) -> Comparison:
        rules, own = self._rules, next(iter(self._baseline_keys), None)
        days = self._days.bit_count()
        totals = {
            key: one.total(rules) for key, one in self._candidates.items() if one.days == days
        }
        if len(totals) < 2:  # candidates change with the load: compare those of one day
            days = 1
            totals = {key: one.total_of_last(rules) for key, one in self._candidates.items()}
        best = min(
            totals,
            key=lambda key: (
                rules.ranking(totals[key]),
                key != own,
                rules.tie_breaker(totals[key]),
                str(key),
            ),
        )
        is_change = best != own
        settings = {name: totals[best][name] for name in rules.settings}
        return Comparison(
            settings=settings if is_change else self._baseline,
            in_force=self._baseline,
            is_change=is_change,
            days=days,
            before=None if own is None else totals.get(own),
            after=totals[best],
        )


class _Candidate:
    __slots__ = ("_bit", "_last", "_maxima", "_newest", "_sums", "days")

    def __init__(self, read: _RowReader, row: Row, bit: int) -> None:
        self.days = 1
        self._bit = bit
        self._last: tuple[list[Any], list[Any]] | None = None  # of the last day, if there are more
        self._newest = read.newest(row)
        self._sums = [value or 0 for value in read.sums(row)]
        self._maxima = list(read.maxima(row))

    def add(self, read: _RowReader, row: Row, bit: int) -> None:
        if bit != self._bit:
            self.days += 1
            self._bit = bit
            if self._last is None:
                self._last = self._sums[:], self._maxima[:]
        for place, value in enumerate(read.sums(row)):
            if value:
                self._sums[place] += value
        maxima = self._maxima
        for place, value in enumerate(read.maxima(row)):
            if value is not None and (maxima[place] is None or value > maxima[place]):
                maxima[place] = value

    def total(self, rules: ReplayRules) -> Row:
        return self._row(rules, self._sums, self._maxima)

    def total_of_last(self, rules: ReplayRules) -> Row:
        return self._row(rules, *(self._last or (self._sums, self._maxima)))

    def _row(self, rules: ReplayRules, sums: list[Any], maxima: list[Any]) -> Row:
        names = (*rules.newest, *rules.sums, *rules.maxima, *rules.settings)
        # In whichever order the days were added up: the same sum.
        rounded = (round(one, 6) for one in sums)
        return dict(zip(names, (*self._newest, *rounded, *maxima), strict=True))
