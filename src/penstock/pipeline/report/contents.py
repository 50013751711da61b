"""The sections of the report, from the rows that were read."""

from __future__ import annotations

from typing import Any

from penstock.domain.insights.answer import Answer
from penstock.domain.lake.layout import midnight_of
from penstock.domain.limits import DAY
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.report import answer_charts, plots, svg
from penstock.pipeline.report.page import Section, figure, page, table
from penstock.pipeline.report.plots import Band, PlotPoint, TimelineBar, ValueAt
from penstock.pipeline.report.tables import (
    CIRCUIT_STATES,
    GRAINS,
    MAX_CHANGES,
    MOST,
    TOP,
    Readings,
    Rows,
    Totals,
    percentile_of,
)
from penstock.pipeline.runner import DaySpan

_MEASURES = {"wait": "wait for the first claim", "service": "work"}
_NONE = "–"


def report(lake: SparkLake, span: DaySpan) -> str:
    """The whole page."""
    readings = Readings(lake, span)
    top = readings.busiest()
    times = _times(readings.days)
    rolled = readings.rollups(top)
    step_ms = GRAINS[readings.grain]
    days = readings.days
    return page(
        title="Penstock: what the queues did",
        text=f"{days[0]} to {days[-1]}" if days else "No data for these days.",
        tiles=_tiles(readings.totals(), days),
        sections=[
            *map(_answer, readings.answers()),
            _latency(rolled, top, times, step_ms, readings.grain),
            _backlog(rolled, top, times, step_ms),
            _targets(readings.targets()),
            _circuits(readings.circuits(), times),
            _tuning(readings.tuning()),
            _frontiers(readings.backtests(top), top),
            _capacity(readings.load(), readings.last_loads()),
        ],
    )


def _answer(found: Answer) -> Section:
    """A question, the answer in words, and its chart."""
    chart = found.picture
    figures = [] if chart is None else [figure(chart.title, answer_charts.draw(chart))]
    return Section(
        title=found.question,
        text=" ".join(found.sentences),
        figures=figures,
        keys=[] if chart is None else answer_charts.keys(chart),
        is_wide=True,
        is_answer=True,
    )


def _times(days: list[str]) -> tuple[int, int]:
    if not days:
        return 0, DAY
    return midnight_of(days[0]), midnight_of(days[-1]) + DAY


def _tiles(total: Totals, days: list[str]) -> list[tuple[str, str]]:
    failed = f"{100 * total.failures / total.attempts:.2g} %" if total.attempts else _NONE
    return [
        ("days", str(len(days))),
        ("queues", str(total.queues)),
        ("messages ended", svg.count_label(total.finished)),
        ("of them dead", svg.count_label(total.dead)),
        ("attempts that failed", failed),
        ("99th percentile of the wait", _ms(percentile_of(total.waits, 0.99))),
    ]


def _latency(rows: Rows, top: list[str], span: tuple[int, int], step: int, grain: str) -> Section:
    figures = []
    for name in top:
        for measure, meaning in _MEASURES.items():
            keys = [f"{measure}_p{share}_ms" for share in (50, 95, 99)]
            found = [
                Band(row["at"], tuple(row[key] for key in keys))
                for row in rows
                if row["name"] == name and row[keys[0]] is not None
            ]
            if found:
                label = f"{meaning} in {name}, per {grain}"
                drawn = plots.bands(found, span, step_ms=step, label=label)
                figures.append(figure(f"{name}: {meaning}", drawn))
    return Section(
        title="Latency",
        text="The line is the median; the bands reach to the 95th and 99th percentiles. "
        f"Per {grain}, the {TOP} busiest queues; the scale is logarithmic.",
        figures=figures,
        keys=[("s1", "p50"), ("near", "to p95"), ("far", "to p99")],
    )


def _backlog(rows: Rows, top: list[str], span: tuple[int, int], step_ms: int) -> Section:
    series = {
        name: [
            ValueAt(row["at"], row["backlog"])
            for row in rows
            if row["name"] == name and row["backlog"] is not None
        ]
        for name in top
    }
    known = {name: points for name, points in series.items() if points}
    drawn = plots.lines(
        known, span, step_ms=step_ms, format_value=svg.count_label, label="messages that were ready"
    )
    return Section(
        title="Backlog",
        text="The most messages that were ready and unclaimed, over time.",
        figures=[figure("Ready messages", drawn)] if known else [],
        keys=[(f"s{number}", name) for number, name in enumerate(known, start=1)],
        is_wide=True,
    )


def _targets(rows: Rows) -> Section:
    heads = ("Queue", "Target", "Shall", "Did", "Burn", "Missed")
    cells = [
        (
            row["queue"],
            f"{row['objective']} within {_ms(row['limit_ms'])}"
            if row["limit_ms"]
            else row["objective"],
            f"{row['percent']:g} %",
            f"{row['good_percent']:.4g} %",
            f"{row['burn']:.3g}",
            svg.count_label(row["bad"]),
        )
        for row in rows
    ]
    return Section(
        title="Targets",
        text="On the last day. A burn of 1 uses the budget up exactly; more is too much. "
        f"The {MOST} that burn most.",
        figures=[figure("Service-level targets", table(heads, cells))] if cells else [],
        is_wide=True,
    )


def _circuits(facts: Rows, span: tuple[int, int]) -> Section:
    lanes = circuit_stretches(facts, span)
    drawn = plots.timeline(lanes, span, label="when circuits were open")
    shown = f"The {MOST} circuits that changed most often."
    if len(facts) == MAX_CHANGES:
        shown = (
            f"The newest {MAX_CHANGES:,} changes of the {MOST} circuits that changed most often."
        )
    return Section(
        title="Circuits",
        text="When requests of a route were held, and when single probes were let through. "
        f"{shown}",
        figures=[figure("Open and half-open times", drawn)] if lanes else [],
        keys=[("closed", "closed"), ("open", "open"), ("half_open", "half-open")],
        is_wide=True,
    )


def circuit_stretches(facts: Rows, span: tuple[int, int]) -> dict[str, list[TimelineBar]]:
    """Open and half-open periods by route, the longest open first; facts are in order of time."""
    begun: dict[str, tuple[str, int]] = {}
    lanes: dict[str, list[TimelineBar]] = {}
    ends = [{"route": route, "at": span[1], "kind": "circuit_closed"} for route in _routes(facts)]
    for fact in (*facts, *ends):
        route, at, state = fact["route"], fact["at"], CIRCUIT_STATES[fact["kind"]]
        lane = lanes.setdefault(route, [])
        if route in begun and begun[route][0] != "closed":
            kind, since = begun[route]
            period = f"{kind.replace('_', '-')} for {svg.ms_label(at - since)}"
            lane.append(TimelineBar(since, at, kind, f"{route}: {period}"))
        begun[route] = state, at
    total = {route: sum(s.to_at - s.from_at for s in lane) for route, lane in lanes.items()}
    return {route: lanes[route] for route in sorted(lanes, key=lambda r: (-total[r], r))}


def _routes(facts: Rows) -> list[str]:
    return sorted({fact["route"] for fact in facts})


def _tuning(rows: Rows) -> Section:
    heads = (
        "Route", "Settings", "Max. age", "Samples kept", "Threshold", "Server survives",
        "Outages", "Missed", "False opens", "Detection", "Open",
    )  # fmt: skip
    chosen = [row for row in rows if row["is_recommended"] or row["candidate"] == "now"]
    chosen.sort(key=lambda r: (r["route"] != "*", r["route"], not r["is_recommended"]))
    cells = [
        (
            "all routes" if row["route"] == "*" else row["route"],
            "recommended" if row["is_recommended"] else "in force",
            _ms(row["entries_max_age_ms"]),
            f"{row['max_queue_sample_count']:,}",
            f"{row['error_threshold_percentage']} %",
            _ms(row["survival_ms"]),
            str(row["outages"]),
            str(row["missed"]),
            str(row["false_opens"]),
            _ms(row["detection_max_ms"]),
            _ms(row["open_ms"]),
        )
        for row in chosen
    ]
    best = [n for n, row in enumerate(chosen) if row["is_recommended"]]
    return Section(
        title="Circuit breaker settings",
        text="The last day, replayed under the settings in force and under the recommended ones. "
        f"All routes together, and the {MOST - 1} with most outages.",
        figures=[figure("Replays", table(heads, cells, best=best))] if cells else [],
        is_wide=True,
    )


def _frontiers(rows: Rows, top: list[str]) -> Section:
    figures = []
    for name in top:
        spots = [
            _spot(row) for row in rows if row["queue"] == name and row["age_p99_ms"] is not None
        ]
        if spots:
            drawn = plots.frontier(
                spots,
                x_label="worker hours a day",
                y_label="p99 age at claim",
                label=f"profiles of the autoscaler for {name}",
            )
            figures.append(figure(name, drawn))
    return Section(
        title="Autoscaler profiles",
        text="The last day's arrivals, replayed under each profile: further left is cheaper, "
        "further down is faster. The dashed line joins the profiles that no other beats.",
        figures=figures,
        keys=[("bar", "on the frontier"), ("s2", "in force"), ("s3", "recommended (ring)")],
    )


def _spot(row: dict[str, Any]) -> PlotPoint:
    label = (
        f"{row['candidate']}: {row['worker_hours']:.3g} worker hours, "
        f"99 of 100 claimed after {_ms(row['age_p99_ms'])}, "
        f"backlog cleared in {_ms(row['clear_max_ms'])}, {row['flaps']} flaps"
    )
    return PlotPoint(
        x=row["worker_hours"],
        y=row["age_p99_ms"],
        name=row["candidate"],
        label=label,
        is_on_frontier=row["is_on_frontier"],
        is_recommended=row["is_recommended"],
        is_now=row["candidate"] == "now",
    )


def _capacity(together: Rows, last: Rows) -> Section:
    figures = []
    if together:
        loads = [(row["dt"], float(row["messages"])) for row in together]
        peaks = [(row["dt"], row["per_second_peak"]) for row in together]
        drawn = plots.bars(loads, format_value=svg.count_label, label="messages a day")
        figures.append(figure("Messages a day", drawn))
        drawn = plots.bars(
            peaks, format_value=svg.count_label, label="messages a second in the peak"
        )
        figures.append(figure("Messages a second, in the busiest minute", drawn))
    if last:
        inner = _capacity_table(last)
        figures.append(figure(f"Queues on {last[0]['dt']}", inner, is_wide=True))
    return Section(
        title="Capacity",
        text="Load and peak, bytes moved, and how long the storage lasts.",
        figures=figures,
    )


def _capacity_table(rows: Rows) -> str:
    heads = (
        "Queue", "Messages", "Peak / average", "Bytes/s", "Peak bytes/s", "Cost a day",
        "Days offline", "Days until full", "Growth a week",
    )  # fmt: skip
    cells = [
        (
            "all" if row["queue"] == "*" else row["queue"],
            svg.count_label(row["messages"]),
            _number(row["peak_to_average"]),
            _number(row["bandwidth"]),
            _number(row["bandwidth_peak"]),
            _number(row["cost"]),
            _number(row["days_offline"]),
            _number(row["days_until_full"]),
            _NONE if row["growth_per_week"] is None else f"{100 * row['growth_per_week']:+.3g} %",
        )
        for row in rows
    ]
    return table(heads, cells)


def _ms(value: int | None) -> str:
    return _NONE if value is None else svg.ms_label(value)


def _number(value: float | None) -> str:
    return _NONE if value is None else svg.count_label(value)
