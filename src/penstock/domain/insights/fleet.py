"""Which fleet profile?  From the table scaling_backtest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.domain.insights.answer import (
    MAX_NAMED,
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
            f"Not replayed: {listed(skipped)} (several queues, or goals besides backlog_goal_s)."
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
    changed = [(name, one) for name, one in found if one.is_change]
    sentences = [_sentence(name, one) for name, one in changed[:MAX_NAMED]]
    if len(changed) > MAX_NAMED:
        sentences.append(f"Another profile is also better for {_rest(changed)}.")
    same = [name for name, one in found if not one.is_change]
    if same:
        sentences.append(f"The profile in force is the best of those replayed for {listed(same)}.")
    return sentences


def _rest(changed: Found) -> str:
    return listed([name for name, _ in changed[MAX_NAMED:]])


def _sentence(name: str, one: Comparison) -> str:
    profile = one.settings
    advice = (
        f"{name}: backlog_goal_s = {profile['backlog_goal_s']}, samples_needed = "
        f"{profile['samples_needed']}, most_up = {profile['most_up']}."
    )
    if not one.before:
        return f"{advice} How much better that is, is not known: {NOT_REPLAYED}."
    before, after = _hours(one.before), _hours(one.after)
    changed = (
        f" ({percent(abs(after - before) / before)} {_direction(before, after)})" if before else ""
    )
    ages = [duration(largest(rows, "age_p99_ms") or 0) for rows in (one.after, one.before)]
    return (
        f"{advice} On {counted(one.days, 'recorded day')} it would have used {number(after)} "
        f"worker hours instead of {number(before)}{changed}, and claimed 99 of 100 messages "
        f"within {ages[0]} instead of {ages[1]} on the worst day."
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
    refusal = None
    if not one.is_change:
        refusal = "This profile is in force."
    elif not one.before:
        refusal = f"{NOT_REPLAYED[0].upper()}{NOT_REPLAYED[1:]}: {HOW}."
    return Advice(
        target=target,
        settings=one.settings,
        before=one.in_force,
        days=one.days,
        backtest=figures(one),
        refusal=refusal,
    )


def _picture(found: Found) -> Picture | None:
    values = [(name, (_hours(one.before), _hours(one.after))) for name, one in found if one.before]
    return bars("Worker hours", Unit.HOURS, ("in force", "recommended"), values)
