"""Numbers as a line of small bars, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[int]) -> str:
    """One bar per value, as high as its share of the greatest; only 0 has the lowest bar."""
    most = max(values, default=0)
    top = len(_BARS) - 1
    return "".join(_BARS[0 if not value else max(1, value * top // most)] for value in values)
