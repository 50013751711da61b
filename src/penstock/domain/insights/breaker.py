"""Which breaker settings would have been better, and by how much?  From breaker_tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.domain.insights.answer import (
    MAX_NAMED,
    Advice,
    BacktestFigure,
    Chart,
    Row,
    SettingsInForce,
    SourceTable,
    Unit,
    bars,
)
from penstock.domain.insights.replays import UNKNOWN_GAIN, Comparison, ReplayRules, compare
from penstock.domain.insights.wording import (
    count_phrase,
    duration,
    join_names,
    number,
    value_text,
)

ALL_ROUTES = "*"
ANY_ROUTE = ""  # as the key of settings in force: those of routes that have none of their own
SETTINGS = (
    "entries_max_age_ms",
    "max_queue_sample_count",
    "error_threshold_percentage",
    "min_queue_sample_count",
)
# What makes settings better, most important first: the server survives; no outage is missed; no
# false openings; fast detection.
RANKING = ("unsafe", "missed", "false_opens", "detection_ms")
USUAL_THRESHOLD = 80  # gateleen's recommendation if there is no history: not too aggressive
NO_DATA = "No calls to any route in this period."
HOW_TO_REPLAY = (
    "set pipeline.breaker_max_age_ms and the other pipeline.breaker_… settings to their values, "
    "and run the pipeline again"
)


def _ranking(total: Row) -> tuple[Any, ...]:
    return tuple(total[name] for name in RANKING)


def _tie_breaker(total: Row) -> tuple[Any, ...]:
    """Where history does not decide: near the formula's age, and near the usual threshold."""
    threshold = total["error_threshold_percentage"]
    return total["off_by"] or 0, abs(threshold - USUAL_THRESHOLD), threshold


RULES = ReplayRules(
    subject="route",
    settings=SETTINGS,
    capacity_setting="max_queue_sample_count",
    sums=(*RANKING, "outages", "failed", "open_ms"),
    maxima=("detection_max_ms",),
    newest=("off_by",),
    ranking=_ranking,
    tie_breaker=_tie_breaker,
)


def breaker(
    table: SourceTable, in_force: Sequence[SettingsInForce] | None = None
) -> tuple[list[str], Chart | None, list[Advice]]:
    """`in_force`: the settings in force by route; None: those that the replays began with."""
    known: Mapping[str, dict[str, int] | None] = {one.key: one.settings for one in in_force or ()}
    others = known.get(ANY_ROUTE)
    compared = compare(table, RULES, lambda route: [known.get(route, others)])
    found = [
        (route, one)
        for route, [one] in sorted(compared.items(), key=lambda one: (one[0] != ALL_ROUTES, one[0]))
        if one is not None
    ]
    if not found:
        return [NO_DATA], None, []
    return _sentences(found), _chart(found), [_advice(route, one) for route, one in found]


def _sentences(found: list[tuple[str, Comparison]]) -> list[str]:
    changed = [(route, one) for route, one in found if one.is_change]
    sentences = [_sentence(route, one) for route, one in changed[:MAX_NAMED]]
    if len(changed) > MAX_NAMED:
        sentences.append(f"There is advice for {number(len(changed) - MAX_NAMED)} more routes.")
    same = [_name(route) for route, one in found if not one.is_change]
    if same:
        sentences.append(
            f"For {join_names(same)} the settings in force did as well as any that were replayed"
            f" ({count_phrase(found[0][1].days, 'day')})."
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
    days = count_phrase(one.days, "recorded day")
    if one.before is None:
        return f"{advice} {UNKNOWN_GAIN}"
    gains = [text for text in map(_gain, figures(one)) if text] or ["sooner detection, in total"]
    outages = count_phrase(one.after["outages"], "outage")
    return f"{advice} On {days} with {outages}: {join_names(gains, most=10)}."


def figures(one: Comparison) -> list[BacktestFigure]:
    def figure(name: str, column: str, unit: Unit = Unit.COUNT) -> BacktestFigure:
        before = None if one.before is None else one.before[column]
        return BacktestFigure(name=name, unit=unit, before=before, after=one.after[column])

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
    return one.advice(route, figures(one), same="These settings are in force.", how=HOW_TO_REPLAY)


def _chart(found: list[tuple[str, Comparison]]) -> Chart | None:
    values = [
        (_name(route), (one.before["failed"], one.after["failed"]))
        for route, one in found
        if one.before is not None
    ]
    return bars("Calls that fail", Unit.COUNT, ("in force", "recommended"), values)


def _name(route: str) -> str:
    return "all routes" if route == ALL_ROUTES else route
