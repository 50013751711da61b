"""The charts of answers (domain/insights) as SVG: bars by name, and lines by day."""

from __future__ import annotations

from penstock.domain.insights.answer import Chart, ChartKind, ChartPoint
from penstock.domain.insights.wording import shorten, value_text
from penstock.domain.lake.layout import midnight_of
from penstock.domain.limits import DAY
from penstock.pipeline.report import plots, svg
from penstock.pipeline.report.plots import ValueAt
from penstock.pipeline.report.svg import Box, Scale

_BAR, _GAP, _LEFT, _RIGHT = 14, 12, 250, 110


def draw(chart: Chart) -> str:
    if chart.kind is ChartKind.LINES:
        return _lines(chart)
    return _bars(chart)


def keys(chart: Chart) -> list[tuple[str, str]]:
    """Classes of the colours, and the names of the series."""
    return [(f"s{number}", name) for number, name in enumerate(chart.series, start=1)]


def _lines(chart: Chart) -> str:
    days = [midnight_of(point.name) for point in chart.points]
    series = {
        name: [
            ValueAt(at, value)
            for at, point in zip(days, chart.points, strict=True)
            if (value := point.values[place]) is not None
        ]
        for place, name in enumerate(chart.series)
    }
    return plots.lines(
        series,
        (days[0], days[-1]),
        step_ms=DAY,
        format_value=lambda value: value_text(value, chart.unit),
        label=chart.title,
    )


def _bars(chart: Chart) -> str:
    """A group of horizontal bars per name, with their values at the ends."""
    group = _BAR * len(chart.series) + _GAP
    height = group * len(chart.points) + 8
    box = Box(width=svg.WIDE, left=_LEFT, top=4, bottom=height, height=height)
    most = max((v for p in chart.points for v in p.values if v is not None), default=1)
    x = Scale(low=0, high=most or 1, from_px=box.left, to_px=box.width - _RIGHT)
    parts = [svg.line(box.left, box.top, box.left, box.bottom, "base")]
    for number, point in enumerate(chart.points):
        top = box.top + group * number + _GAP / 2
        middle = top + _BAR * len(chart.series) / 2 + 4
        name = shorten(point.name, most=36)
        parts.append(svg.text(box.left - 10, middle, name, "lane", anchor="end"))
        parts += _group(chart, point, x, top)
    return svg.drawing(box, parts, label=chart.title)


def _group(chart: Chart, point: ChartPoint, x: Scale, top: float) -> list[str]:
    parts = []
    for place, value in enumerate(point.values):
        text = value_text(value, chart.unit)
        end = x(value or 0)
        label = f"{point.name}, {chart.series[place]}: {text}"
        y = top + _BAR * place
        width = max(end - x(0), 1)
        parts.append(svg.rect(x(0), y, width, _BAR - 3, f"fill s{place + 1}", label=label))
        parts.append(svg.text(end + 8, y + _BAR - 4, text))
    return parts
