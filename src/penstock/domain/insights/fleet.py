"""Which fleet profile?  From the table scaling_backtest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from penstock.domain.insights.answer import (
    Advice,
    BacktestFigure,
    Chart,
    Row,
    SettingsInForce,
    SourceTable,
    Unit,
    bars,
    largest,
)
from penstock.domain.insights.replays import UNKNOWN_GAIN, Comparison, ReplayRules, compare
from penstock.domain.insights.wording import count_phrase, duration, join_names, number, percent

SETTINGS = ("samples_needed", "backlog_goal_s", "most_up")
NO_DATA = "No messages were processed in this period."
HOW_TO_REPLAY = (
    "set pipeline.backtest_profile_goal_s and the other pipeline.backtest_profile_… settings to "
    "their values, and run the pipeline again"
)

NamedComparisons = list[tuple[str, Comparison]]


def _hours(rows: Iterable[Row]) -> float:
    return round(sum(row["worker_hours"] or 0.0 for row in rows), 6)


def _ranking(sums: Row) -> tuple[Any, ...]:
    """The cheapest that is fast enough on every day, or else the fastest."""
    age, hours, goal = sums["age_p99_ms"] or 0, _hours([sums]), sums["age_goal_ms"]
    is_enough = sums["unfinished"] == 0 and goal is not None and age <= goal
    return not is_enough, hours if is_enough else age, age, sums["flaps"]


RULES = ReplayRules(
    subject="queue",
    settings=SETTINGS,
    sums=("unfinished", "worker_hours", "flaps"),
    maxima=("age_p99_ms", "age_goal_ms", "clear_max_ms", "workers_max"),
    ranking=_ranking,
)


def fleet(
    table: SourceTable, in_force: Sequence[SettingsInForce] | None = None
) -> tuple[list[str], Chart | None, list[Advice]]:
    """`in_force`: the profiles of the fleets; None: fleets are not known, so queues are named."""
    fleets: dict[str, list[SettingsInForce]] = {}
    for one in in_force or ():
        if one.settings is not None:
            fleets.setdefault(one.key, []).append(one)
    compared = compare(
        table, RULES, lambda queue: [one.settings for one in fleets.get(queue, ())] or [None]
    )
    found: NamedComparisons = []
    unknown: NamedComparisons = []
    for queue, them in sorted(compared.items()):
        names = [one.target for one in fleets.get(queue, ())]
        named = zip(names or [queue], them, strict=True)
        known = found if names else unknown
        known += [(name, one) for name, one in named if one is not None]
    found.sort(key=lambda one: one[0])
    if not found and not unknown:
        return [NO_DATA], None, []
    sentences = _sentences(_by_gain(found) + _by_gain(unknown))
    skipped = [one.target for one in in_force or () if one.settings is None]
    if skipped:
        sentences.append(
            f"Not replayed: {join_names(skipped)} (several queues, other goals, or not seen yet)."
        )
    return sentences, _chart(_by_gain(found + unknown)), [_advice(*one) for one in found]


def _by_gain(found: NamedComparisons) -> NamedComparisons:
    """Those that change most working hours first."""

    def gain(one: Comparison) -> float:
        before = [] if one.before is None else [one.before]
        return abs(_hours(before) - _hours([one.after]))

    return sorted(found, key=lambda one: (-gain(one[1]), one[0]))


def _sentences(found: NamedComparisons) -> list[str]:
    """One sentence for all that get the same profile."""
    by_profile: dict[tuple[object, ...], NamedComparisons] = {}
    for name, one in found:
        if one.is_change:
            profile = (*one.settings.values(), one.days, one.before is not None)
            by_profile.setdefault(profile, []).append((name, one))
    sentences = [_sentence(them) for them in by_profile.values()]
    same = [name for name, one in found if not one.is_change]
    if same:
        best_for = join_names(same)
        sentences.append(f"The profile in force is the best of those replayed for {best_for}.")
    return sentences


def _sentence(found: NamedComparisons) -> str:
    profile, days = found[0][1].settings, found[0][1].days
    advice = (
        f"For {join_names([name for name, _ in found])}: "
        f"backlog_goal_s = {profile['backlog_goal_s']}, "
        f"samples_needed = {profile['samples_needed']}, most_up = {profile['most_up']}."
    )
    before = [one.before for _, one in found if one.before is not None]
    after = [one.after for _, one in found]
    if not before:
        return f"{advice} {UNKNOWN_GAIN}"
    hours = _hours(before), _hours(after)
    share = abs(hours[1] - hours[0]) / hours[0] if hours[0] else 0.0
    changed = f" ({percent(share)} {_direction(*hours)})" if share else ""
    ages = [duration(largest(rows, "age_p99_ms") or 0) for rows in (before, after)]
    instead = "as before" if ages[0] == ages[1] else f"instead of {ages[0]}"
    return (
        f"{advice} On {count_phrase(days, 'recorded day')} it would have used {number(hours[1])} "
        f"worker hours instead of {number(hours[0])}{changed}, and claimed 99 of 100 messages "
        f"within {ages[1]} on the worst day, {instead}."
    )


def _direction(before: float, after: float) -> str:
    return "less" if after < before else "more"


def figures(one: Comparison) -> list[BacktestFigure]:
    def figure(name: str, column: str, unit: Unit = Unit.COUNT) -> BacktestFigure:
        before = None if one.before is None else one.before[column]
        return BacktestFigure(name=name, unit=unit, before=before, after=one.after[column])

    return [
        figure("worker hours", "worker_hours", Unit.HOURS),
        figure("p99 age at claim", "age_p99_ms", Unit.MS),
        figure("longest backlog", "clear_max_ms", Unit.MS),
        figure("most workers", "workers_max"),
        figure("scaling reversals", "flaps"),
    ]


def _advice(target: str, one: Comparison) -> Advice:
    return one.advice(target, figures(one), same="This profile is in force.", how=HOW_TO_REPLAY)


def _chart(found: NamedComparisons) -> Chart | None:
    values = [
        (name, (_hours([one.before]), _hours([one.after])))
        for name, one in found
        if one.before is not None
    ]
    return bars("Worker hours", Unit.HOURS, ("in force", "recommended"), values)
