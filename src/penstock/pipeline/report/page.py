"""The report's HTML page around the charts: one file with its style, light and dark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

import msgspec

_STYLE = """
:root { color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1c2430; --soft: #5c6675; --hair: #e3e7ec;
  --s1: #2563c9; --s2: #c2571a; --s3: #1d8a5f; --s4: #8a4bc4; --s5: #b3872a; --s6: #c23a6b;
  --near: #2563c94d; --far: #2563c926; --open: #cf3f3f; --half: #e0a12b; --closed: #dfe9e3;
  --mute: #9aa5b4; }
@media (prefers-color-scheme: dark) { :root {
  --page: #11151b; --card: #1a2029; --ink: #e6eaf0; --soft: #9aa6b6; --hair: #2c3542;
  --s1: #6aa5ff; --s2: #f0935a; --s3: #57c796; --s4: #bd93f0; --s5: #dcb65a; --s6: #f07ba3;
  --near: #6aa5ff66; --far: #6aa5ff33; --open: #ef6a6a; --half: #e6b450; --closed: #26352f;
  --mute: #66748a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 26px; margin: 0; letter-spacing: -0.01em; }
h2 { font-size: 19px; margin: 40px 0 2px; }
h3 { font-size: 14px; margin: 0 0 6px; font-weight: 600; overflow-wrap: anywhere; }
p { margin: 2px 0 12px; color: var(--soft); max-width: 78ch; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px;
  margin: 20px 0 8px; }
.tile, figure { background: var(--card); border: 1px solid var(--hair); border-radius: 10px; }
.tile { padding: 12px 16px; }
.tile b { display: block; font-size: 22px; font-weight: 650; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 500px), 1fr));
  gap: 14px; }
.plots.one { grid-template-columns: 1fr; }
figure { margin: 0; padding: 14px 16px 10px; min-width: 0; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { font-size: 12px; fill: var(--soft); font-variant-numeric: tabular-nums; }
svg text.lane, svg text.named { fill: var(--ink); }
svg text.named { font-weight: 600; }
.grid { stroke: var(--hair); } .base { stroke: var(--mute); }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }
.band { stroke: none; } .near { fill: var(--near); } .far { fill: var(--far); }
.bar { fill: var(--s1); } .closed { fill: var(--closed); } .open { fill: var(--open); }
.half_open { fill: var(--half); }
.spot { fill: var(--mute); stroke: var(--card); stroke-width: 1.5; }
.spot.ahead { fill: var(--s1); } .spot.now { fill: var(--s2); }
.ring { fill: none; stroke: var(--s3); stroke-width: 2.2; pointer-events: none; }
.frontier { fill: none; stroke: var(--s1); stroke-width: 1.4; stroke-dasharray: 4 3; }
.key { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 4px 0 10px; font-size: 13px;
  color: var(--soft); }
.key i { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 6px;
  vertical-align: -1px; }
i.near { background: var(--near); } i.far { background: var(--far); }
i.bar { background: var(--s1); }
i.closed { background: var(--closed); } i.open { background: var(--open); }
i.half_open { background: var(--half); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
th, td { padding: 6px 10px; border-bottom: 1px solid var(--hair); text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
th { color: var(--soft); font-weight: 600; vertical-align: bottom; white-space: normal; }
figure.wide { grid-column: 1 / -1; }
th:first-child, td:first-child { text-align: left; }
tr.best td { font-weight: 650; }
tr:last-child td { border-bottom: 0; }
footer { margin-top: 48px; color: var(--soft); font-size: 13px; }
"""
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")  # where a long name may be broken
_SERIES = "".join(
    f".line.s{n} {{ stroke: var(--s{n}); }} i.s{n} {{ background: var(--s{n}); }}\n"
    for n in range(1, 7)
)


class Section(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    says: str  # explains the figures
    figures: Sequence[str] = ()
    keys: Sequence[tuple[str, str]] = ()  # class and what it stands for
    is_wide: bool = False


def figure(title: str, inner: str, *, is_wide: bool = False) -> str:
    wide = ' class="wide"' if is_wide else ""
    return f"<figure{wide}><h3>{escape(title)}</h3>{inner}</figure>"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, best: Sequence[int] = ()) -> str:
    """`best`: indices of rows to highlight."""
    head = "".join(f"<th>{_HUMP.sub('<wbr>', escape(one))}</th>" for one in heads)
    body = "".join(
        f"<tr{' class=best' if n in best else ''}>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in row)
        + "</tr>"
        for n, row in enumerate(rows)
    )
    inner = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="scroll"><table>{inner}</table></div>'


def page(
    *, title: str, says: str, tiles: Sequence[tuple[str, str]], sections: Sequence[Section]
) -> str:
    tiled = "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
        for name, value in tiles
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}{_SERIES}</style></head><body><main>"
        f'<h1>{escape(title)}</h1><p>{escape(says)}</p><div class="tiles">{tiled}</div>'
        f"{''.join(map(_section, sections))}"
        "<footer>Made by penstock pipeline report. All times are UTC.</footer>"
        "</main></body></html>\n"
    )


def _section(section: Section) -> str:
    keys = "".join(
        f'<span><i class="{kind}"></i>{escape(name)}</span>' for kind, name in section.keys
    )
    keyed = f'<div class="key">{keys}</div>' if keys else ""
    wide = " one" if section.is_wide else ""
    inner = "".join(section.figures) or figure("Nothing yet", "<p>No data.</p>")
    return (
        f"<section><h2>{escape(section.title)}</h2><p>{escape(section.says)}</p>{keyed}"
        f'<div class="plots{wide}">{inner}</div></section>'
    )
