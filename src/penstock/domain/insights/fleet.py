"""Which fleet profile?  From the table scaling_backtest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.domain.insights.answer import (
    Advice,
    BacktestFigure,
    InForce,
    Picture,
    Row,
    Rows,
    Unit,
    added,
    bars,
    grouped,
    largest,
)
from penstock.domain.insights.replays import NOT_REPLAYED, Comparison, compare
from penstock.domain.insights.wording import counted, duration, listed, number, percent

SETTINGS = ("samples_needed", "backlog_goal_s", "most_up")
NONE = "No queue was worked on in these days."
HOW = "set pipeline.backtest_profile_goal_s and its neighbours to them, and run the pipeline again"

Found = list[tuple[str, Comparison]]


def fleet(
    rows: Rows, in_force: Sequence[InForce] | None = None
) -> tuple[list[str], Picture | None, list[Advice]]:
    """`in_force`: the profiles of the fleets; None: fleets are not known, so queues are named."""
    by_queue = {queue: them for (queue,), them in grouped(rows, "queue").items()}
    fleets = [one for one in in_force or () if one.settings is not None and one.key in by_queue]
    others = sorted(by_queue.keys() - {one.key for one in fleets})
    found = _compared([(one.target, by_queue[one.key], one.settings) for one in fleets])
    unknown = _compared([(queue, by_queue[queue], None) for queue in others])
    if not found and not unknown:
        return [NONE], None, []
    sentences = _sentences(_by_gain(found) + _by_gain(unknown))
    skipped = [one.target for one in in_force or () if one.settings is None]
    if skipped:
        sentences.append(
            f"Not replayed: {listed(skipped)} (several queues, other goals, or not seen yet)."
        )
    return sentences, _picture(_by_gain(found + unknown)), [_advice(*one) for one in found]


def _compared(subjects: Sequence[tuple[str, Rows, dict[str, int] | None]]) -> Found:
    return [
        (name, compared)
        for name, rows, settings in subjects
        if (compared := compare(rows, SETTINGS, settings, _order)) is not None
    ]


def _order(rows: list[Row]) -> tuple[Any, ...]:
    """The cheapest that is fast enough on every day, or else the fastest."""
    age, hours = largest(rows, "age_p99_ms") or 0, _hours(rows)
    goal = largest(rows, "age_goal_ms")
    is_enough = added(rows, "unfinished") == 0 and goal is not None and age <= goal
    return not is_enough, hours if is_enough else age, age, added(rows, "flaps")


def _hours(rows: list[Row]) -> float:
    return round(sum(row["worker_hours"] or 0.0 for row in rows), 6)


def _by_gain(found: Found) -> Found:
    """Those that change most working hours first."""
    return sorted(
        found, key=lambda one: (-abs(_hours(one[1].before) - _hours(one[1].after)), one[0])
    )


def _sentences(found: Found) -> list[str]:
    """One sentence for all that get the same profile."""
    by_profile: dict[tuple[object, ...], Found] = {}
    for name, one in found:
        if one.is_change:
            profile = (*one.settings.values(), one.days, bool(one.before))
            by_profile.setdefault(profile, []).append((name, one))
    sentences = [_sentence(them) for them in by_profile.values()]
    same = [name for name, one in found if not one.is_change]
    if same:
        sentences.append(f"The profile in force is the best of those replayed for {listed(same)}.")
    return sentences


def _sentence(found: Found) -> str:
    profile, days = found[0][1].settings, found[0][1].days
    advice = (
        f"For {listed([name for name, _ in found])}: backlog_goal_s = {profile['backlog_goal_s']}, "
        f"samples_needed = {profile['samples_needed']}, most_up = {profile['most_up']}."
    )
    before = [row for _, one in found for row in one.before]
    after = [row for _, one in found for row in one.after]
    if not before:
        return f"{advice} How much better that is, is not known: {NOT_REPLAYED}."
    hours = _hours(before), _hours(after)
    share = abs(hours[1] - hours[0]) / hours[0] if hours[0] else 0.0
    changed = f" ({percent(share)} {_direction(*hours)})" if share else ""
    ages = [duration(largest(rows, "age_p99_ms") or 0) for rows in (before, after)]
    instead = "as before" if ages[0] == ages[1] else f"instead of {ages[0]}"
    return (
        f"{advice} On {counted(days, 'recorded day')} it would have used {number(hours[1])} "
        f"worker hours instead of {number(hours[0])}{changed}, and claimed 99 of 100 messages "
        f"within {ages[1]} on the worst day, {instead}."
    )


def _direction(before: float, after: float) -> str:
    return "less" if after < before else "more"


def figures(one: Comparison) -> list[BacktestFigure]:
    def figure(name: str, unit: Unit, measure: Any) -> BacktestFigure:
        before, after = (measure(rows) if rows else None for rows in (one.before, one.after))
        return BacktestFigure(name=name, unit=unit, before=before, after=after)

    return [
        figure("worker hours", Unit.HOURS, _hours),
        figure("age of 99 of 100 when claimed", Unit.MS, lambda rows: largest(rows, "age_p99_ms")),
        figure("longest time with a backlog", Unit.MS, lambda rows: largest(rows, "clear_max_ms")),
        figure("most workers", Unit.COUNT, lambda rows: largest(rows, "workers_max")),
        figure("reversed changes", Unit.COUNT, lambda rows: added(rows, "flaps")),
    ]


def _advice(target: str, one: Comparison) -> Advice:
    return one.advice(target, figures(one), same="This profile is in force.", how=HOW)


def _picture(found: Found) -> Picture | None:
    values = [(name, (_hours(one.before), _hours(one.after))) for name, one in found if one.before]
    return bars("Worker hours", Unit.HOURS, ("in force", "recommended"), values)
