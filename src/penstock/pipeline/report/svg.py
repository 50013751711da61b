"""SVG: scales, ticks and the few shapes that the charts consist of.

Colours are classes, so that the page can define them for light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

import msgspec

from penstock.domain.datetimes import moment_of
from penstock.domain.limits import DAY, HOUR, MINUTE

PANEL = 540  # widths of a chart: two side by side, or one
WIDE = 1120
_DURATIONS = (1, 10, 100, 1000, 10_000, MINUTE, 10 * MINUTE, HOUR, 10 * HOUR, 4 * DAY, 40 * DAY)
_STEPS = (
    *(n * MINUTE for n in (1, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)),
    *(n * DAY for n in (1, 2, 7, 14, 30, 90, 365)),
)


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """Maps values to pixels, linearly or logarithmically."""

    low: float
    high: float
    from_px: float
    to_px: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        low, high, value = (self._flat(v) for v in (self.low, self.high, value))
        share = (value - low) / (high - low) if high > low else 0.5
        return round(self.from_px + min(max(share, 0.0), 1.0) * (self.to_px - self.from_px), 1)

    def _flat(self, value: float) -> float:
        return math.log10(max(value, 1e-9)) if self.is_log else value


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """The area of a chart within its drawing."""

    left: float = 58
    top: float = 12
    width: float = PANEL
    bottom: float = 180
    height: float = 208

    @property
    def right(self) -> float:
        return self.width - 14


def linear_ticks(low: float, high: float, *, about: int = 4) -> list[float]:
    if high <= low:
        return [low]
    raw = (high - low) / about
    digit = 10 ** math.floor(math.log10(raw))
    step = next(digit * n for n in (1, 2, 5, 10) if digit * n >= raw)
    first = math.ceil(low / step)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def duration_ticks(low: float, high: float) -> list[float]:
    """Round durations in common units."""
    return [float(tick) for tick in _DURATIONS if low <= tick <= high]


def time_ticks(low: int, high: int, *, most: int = 8) -> list[int]:
    step = next((s for s in _STEPS if (high - low) / s <= most), _STEPS[-1])
    return [n * step for n in range(-(-low // step), high // step + 1)]


def time_label(at: int) -> str:
    moment = moment_of(at)
    return f"{moment:%b %d}" if at % DAY == 0 else f"{moment:%H:%M}"


def count_label(value: float) -> str:
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def ms_label(ms: float) -> str:
    for size, unit in ((DAY, " d"), (HOUR, " h"), (MINUTE, " min"), (1000, " s")):
        if ms >= size:
            return f"{ms / size:.3g}{unit}"
    return f"{ms:.3g} ms"


def text(x: float, y: float, words: str, kind: str = "", *, anchor: str = "start") -> str:
    cls = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{cls} text-anchor="{anchor}">{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="{kind}"/>'


def rect(
    x: float,
    y: float,
    width: float,
    height: float,
    kind: str,
    *,
    label: str = "",
    round_px: float = 0,
) -> str:
    corners = f' rx="{round_px:g}"' if round_px else ""
    shape = (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" class="{kind}"{corners}'
    )
    return f"{shape}>{_title(label)}</rect>" if label else f"{shape}/>"


def dot(x: float, y: float, radius: float, kind: str, *, label: str = "") -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" class="{kind}">{_title(label)}</circle>'


def path(points: Iterable[tuple[float, float]], kind: str, *, is_closed: bool = False) -> str:
    steps = " ".join(f"{'L' if n else 'M'}{x:g} {y:g}" for n, (x, y) in enumerate(points))
    return f'<path d="{steps}{" Z" if is_closed else ""}" class="{kind}"/>' if steps else ""


def drawing(box: Box, parts: Sequence[str], *, label: str) -> str:
    return (
        f'<svg viewBox="0 0 {box.width:g} {box.height:g}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def _title(label: str) -> str:
    return f"<title>{escape(label)}</title>" if label else ""
