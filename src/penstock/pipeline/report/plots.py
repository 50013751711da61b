"""The report's charts: bands, lines, timelines, points with a frontier, bars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from penstock.domain.insights.wording import shorten
from penstock.pipeline.report import svg
from penstock.pipeline.report.svg import Box, Scale

FormatValue = Callable[[float], str]
GAP = 2.5  # a line is broken after this many steps without a value


class Band(msgspec.Struct, frozen=True):
    """Ascending values at an instant: p50, p95, p99."""

    at: int
    values: tuple[float, ...]


class ValueAt(msgspec.Struct, frozen=True):
    at: int
    value: float


Row = TypeVar("Row", Band, ValueAt)


class TimelineBar(msgspec.Struct, frozen=True):
    from_at: int
    to_at: int
    kind: str  # a class: open, half_open
    label: str


class PlotPoint(msgspec.Struct, frozen=True, kw_only=True):
    x: float
    y: float
    name: str
    label: str
    is_on_frontier: bool = False
    is_recommended: bool = False
    is_now: bool = False


def bands(rows: Sequence[Band], span: tuple[int, int], *, step_ms: int, label: str) -> str:
    """The first value as a line, the others as shades above it, on a logarithmic scale."""
    box = Box()
    high = max((max(row.values) for row in rows), default=10)
    y = Scale(low=1, high=max(high * 1.3, 10), from_px=box.bottom, to_px=box.top, is_log=True)
    x = _time_scale(span, box)
    parts = _frame(box, x, y, svg.ms_label, ticks=svg.duration_ticks(y.low, y.high))
    for part in _unbroken(rows, step_ms):
        for upper, kind in ((2, "band far"), (1, "band near")):
            top = [(x(r.at), y(r.values[upper])) for r in part]
            base = [(x(r.at), y(r.values[upper - 1])) for r in reversed(part)]
            parts.append(svg.path([*top, *base], kind, is_closed=True))
        parts.append(svg.path([(x(r.at), y(r.values[0])) for r in part], "line s1"))
    return svg.drawing(box, parts, label=label)


def lines(
    series: Mapping[str, Sequence[ValueAt]],
    span: tuple[int, int],
    *,
    step_ms: int,
    format_value: FormatValue,
    label: str,
) -> str:
    box = Box(width=svg.WIDE, bottom=220, height=248)
    high = max((p.value for points in series.values() for p in points), default=1)
    y = Scale(low=0, high=max(high * 1.05, 1), from_px=box.bottom, to_px=box.top)
    x = _time_scale(span, box)
    parts = _frame(box, x, y, format_value, ticks=svg.linear_ticks(y.low, y.high))
    for number, points in enumerate(series.values(), start=1):
        for part in _unbroken(points, step_ms):
            parts.append(svg.path([(x(p.at), y(p.value)) for p in part], f"line s{number}"))
    return svg.drawing(box, parts, label=label)


def timeline(
    rows: Mapping[str, Sequence[TimelineBar]], span: tuple[int, int], *, label: str
) -> str:
    """One lane per name."""
    lane, left = 28, 230
    box = Box(
        width=svg.WIDE, left=left, top=8, bottom=8 + lane * len(rows), height=36 + lane * len(rows)
    )
    x = _time_scale(span, box)
    parts = _time_axis(box, x)
    for number, (name, stretches) in enumerate(rows.items()):
        top = box.top + lane * number + 6
        parts.append(svg.text(left - 10, top + 11, shorten(name, most=34), "lane", anchor="end"))
        parts.append(svg.rect(left, top, box.right - left, lane - 12, "closed", round_px=3))
        for one in stretches:
            from_x, to_x = x(one.from_at), x(one.to_at)
            width = max(to_x - from_x, 1.5)  # so that a short one is visible
            parts.append(svg.rect(from_x, top, width, lane - 12, one.kind, label=one.label))
    return svg.drawing(box, parts, label=label)


def frontier(spots: Sequence[PlotPoint], *, x_label: str, y_label: str, label: str) -> str:
    """Cheaper is left, faster is below; a line joins the spots that no other spot beats."""
    box = Box(bottom=210, height=252)
    xs, ys = [s.x for s in spots], [max(s.y, 1) for s in spots]
    beside = max(max(xs) - min(xs), max(xs) / 10, 1) / 3
    low = max(min(xs) - beside, 0)
    x = Scale(low=low, high=max(xs) + beside, from_px=box.left, to_px=box.right)
    y = Scale(
        low=max(min(ys) / 4, 1),
        high=max(ys) * 4,
        from_px=box.bottom,
        to_px=box.top,
        is_log=True,
    )
    parts = _grid(box, y, svg.duration_ticks(y.low, y.high), svg.ms_label)
    for tick in svg.linear_ticks(x.low, x.high, about=6):
        parts.append(svg.text(x(tick), box.bottom + 16, svg.count_label(tick), anchor="middle"))
    parts.append(svg.text(box.right, box.bottom + 34, x_label, "axis", anchor="end"))
    parts.append(svg.text(box.left + 6, box.top + 8, y_label, "axis"))
    ahead = sorted((s for s in spots if s.is_on_frontier), key=lambda s: s.x)
    parts.append(svg.path([(x(s.x), y(s.y)) for s in ahead], "frontier"))
    for spot in sorted(spots, key=lambda s: (s.is_recommended, s.is_now)):
        parts += _spot(spot, x(spot.x), y(max(spot.y, 1)), box)
    return svg.drawing(box, parts, label=label)


def bars(days: Sequence[tuple[str, float]], *, format_value: FormatValue, label: str) -> str:
    """One bar per day."""
    box = Box(bottom=150, height=178)
    y = Scale(
        low=0,
        high=max((value for _, value in days), default=1) * 1.05 or 1,
        from_px=box.bottom,
        to_px=box.top,
    )
    parts = _grid(box, y, svg.linear_ticks(0, y.high, about=3), format_value)
    room = (box.right - box.left) / max(len(days), 1)
    every = -(-len(days) // 10)
    for number, (day, value) in enumerate(days):
        left, top = box.left + room * number, y(value)
        width = min(room * 0.72, 56)
        place = left + (room - width) / 2
        height = max(box.bottom - top, 0.5)
        parts.append(
            svg.rect(
                place, top, width, height, "bar", label=f"{day}: {format_value(value)}", round_px=2
            )
        )
        if number % every == 0:
            parts.append(svg.text(left + room / 2, box.bottom + 16, day[5:], anchor="middle"))
    return svg.drawing(box, parts, label=label)


def _spot(spot: PlotPoint, x: float, y: float, box: Box) -> list[str]:
    kind = "spot ahead" if spot.is_on_frontier else "spot"
    parts = [svg.dot(x, y, 5, f"{kind} now" if spot.is_now else kind, label=spot.label)]
    if spot.is_recommended:
        parts.append(svg.dot(x, y, 9, "ring", label=spot.label))
    if spot.is_recommended or spot.is_now:
        is_left = x > (box.left + box.right) / 2
        name = f"{spot.name}, recommended" if spot.is_recommended else spot.name
        # Above and below: the two are often close to each other.
        beside = -14 if spot.is_recommended else 22
        parts.append(svg.text(x, y + beside, name, "named", anchor="end" if is_left else "start"))
    return parts


def _time_scale(span: tuple[int, int], box: Box) -> Scale:
    return Scale(low=span[0], high=span[1], from_px=box.left, to_px=box.right)


def _frame(
    box: Box, x: Scale, y: Scale, format_value: FormatValue, *, ticks: Sequence[float]
) -> list[str]:
    return [*_grid(box, y, ticks, format_value), *_time_axis(box, x)]


def _grid(box: Box, y: Scale, ticks: Sequence[float], format_value: FormatValue) -> list[str]:
    parts = []
    for tick in ticks:
        parts.append(svg.line(box.left, y(tick), box.right, y(tick), "grid"))
        parts.append(svg.text(box.left - 8, y(tick) + 4, format_value(tick), anchor="end"))
    return parts


def _time_axis(box: Box, x: Scale) -> list[str]:
    parts = [svg.line(box.left, box.bottom, box.right, box.bottom, "base")]
    most = 7 if box.width < svg.WIDE else 14
    for tick in svg.time_ticks(int(x.low), int(x.high), most=most):
        parts.append(svg.line(x(tick), box.bottom, x(tick), box.bottom + 4, "base"))
        parts.append(svg.text(x(tick), box.bottom + 18, svg.time_label(tick), anchor="middle"))
    return parts


def _unbroken(rows: Sequence[Row], step_ms: int) -> list[list[Row]]:
    """Parts without long gaps: nothing is drawn across a gap."""
    parts: list[list[Row]] = []
    for row in rows:
        if parts and row.at - parts[-1][-1].at <= step_ms * GAP:
            parts[-1].append(row)
        else:
            parts.append([row])
    return [part if len(part) > 1 else part * 2 for part in parts]
