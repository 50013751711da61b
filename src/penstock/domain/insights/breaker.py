"""Which breaker settings would have been better, and by how much?  From breaker_tuning."""

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
from penstock.domain.insights.wording import counted, duration, listed, number, value_text

ALL_ROUTES = "*"
SETTINGS = (
    "entries_max_age_ms",
    "max_queue_sample_count",
    "error_threshold_percentage",
    "min_queue_sample_count",
)
# What makes settings better, most important first: the server survives; no outage is missed; no
# false openings; fast detection.
BETTER = ("unsafe", "missed", "false_opens", "detection_ms")
USUAL_THRESHOLD = 80  # gateleen's recommendation if there is no history: not too aggressive
NONE = "No calls of routes in these days."
HOW = "set pipeline.breaker_max_age_ms and its neighbours to them, and run the pipeline again"


def breaker(
    rows: Rows, in_force: Sequence[InForce] | None = None
) -> tuple[list[str], Picture | None, list[Advice]]:
    """`in_force`: the settings in force by route; None: those that the replays began with."""
    known = {one.key: one.settings for one in in_force or ()}
    routes = sorted(
        grouped(rows, "route").items(), key=lambda one: (one[0] != (ALL_ROUTES,), one[0])
    )
    found = [
        (route, compared)
        for (route,), them in routes
        if (compared := _compared(them, known.get(route))) is not None
    ]
    if not found:
        return [NONE], None, []
    return _sentences(found), _picture(found), [_advice(route, one) for route, one in found]


def _compared(rows: Rows, in_force: dict[str, int] | None) -> Comparison | None:
    # A larger window than the calls need changes nothing.
    return compare(rows, SETTINGS, in_force, _order, _usual, room="max_queue_sample_count")


def _order(rows: list[Row]) -> tuple[Any, ...]:
    return tuple(added(rows, name) for name in BETTER)


def _usual(row: Row) -> tuple[Any, ...]:
    """Where history does not decide: near the formula's age, and near the usual threshold."""
    threshold = row["error_threshold_percentage"]
    return row["off_by"] or 0, abs(threshold - USUAL_THRESHOLD), threshold


def _sentences(found: list[tuple[str, Comparison]]) -> list[str]:
    changed = [(route, one) for route, one in found if one.is_change]
    sentences = [_sentence(route, one) for route, one in changed[:MAX_NAMED]]
    if len(changed) > MAX_NAMED:
        sentences.append(f"There is advice for {number(len(changed) - MAX_NAMED)} more routes.")
    same = [_name(route) for route, one in found if not one.is_change]
    if same:
        sentences.append(
            f"For {listed(same)} the settings in force did as well as any that were replayed"
            f" ({counted(found[0][1].days, 'day')})."
        )
    return sentences


def _sentence(route: str, one: Comparison) -> str:
    settings = one.settings
    advice = (
        f"For {_name(route)}: samples of the last {duration(settings['entries_max_age_ms'])} (from "
        f"{number(settings['min_queue_sample_count'])} to "
        f"{number(settings['max_queue_sample_count'])}), and open at "
        f"{settings['error_threshold_percentage']} % failures."
    )
    days = counted(one.days, "recorded day")
    if not one.before:
        return f"{advice} How much better that is, is not known: {NOT_REPLAYED}."
    gains = [text for text in map(_gain, figures(one)) if text] or ["sooner detection, in total"]
    outages = counted(added(one.after, "outages"), "outage")
    return f"{advice} On {days} with {outages}: {listed(gains, most=10)}."


def figures(one: Comparison) -> list[BacktestFigure]:
    def figure(name: str, column: str, unit: Unit = Unit.COUNT) -> BacktestFigure:
        before, after = (
            (largest if column == "detection_max_ms" else added)(rows, column) if rows else None
            for rows in (one.before, one.after)
        )
        return BacktestFigure(name=name, unit=unit, before=before, after=after)

    return [
        figure("outages that the server does not survive", "unsafe"),
        figure("outages missed", "missed"),
        figure("openings without an outage", "false_opens"),
        figure("slowest detection of an outage", "detection_max_ms", Unit.MS),
        figure("calls that fail", "failed"),
        figure("time that circuits are open", "open_ms", Unit.MS),
    ]


def _gain(one: BacktestFigure) -> str | None:
    if one.before == one.after:
        return None
    before, after = (
        "none" if value is None else value_text(value, one.unit)
        for value in (one.before, one.after)
    )
    return f"{one.name} {after} instead of {before}"


def _advice(route: str, one: Comparison) -> Advice:
    return one.advice(route, figures(one), same="These settings are in force.", how=HOW)


def _picture(found: list[tuple[str, Comparison]]) -> Picture | None:
    values = [
        (_name(route), (added(one.before, "failed"), added(one.after, "failed")))
        for route, one in found
        if one.before
    ]
    return bars("Calls that fail", Unit.COUNT, ("in force", "recommended"), values)


def _name(route: str) -> str:
    return "all routes" if route == ALL_ROUTES else route
