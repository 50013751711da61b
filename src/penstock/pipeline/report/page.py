"""The report's HTML page around the charts: one file with its style, light and dark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from importlib import resources

import msgspec

_STYLE = resources.files("penstock.pipeline.report").joinpath("report.css").read_text()
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")  # where a long name may be broken
_SERIES = "".join(
    f".line.s{n} {{ stroke: var(--s{n}); }} i.s{n} {{ background: var(--s{n}); }}\n"
    for n in range(1, 7)
)


class Section(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    text: str  # explains the figures
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
    *, title: str, text: str, tiles: Sequence[tuple[str, str]], sections: Sequence[Section]
) -> str:
    tiled = "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
        for name, value in tiles
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}{_SERIES}</style></head><body><main>"
        f'<h1>{escape(title)}</h1><p>{escape(text)}</p><div class="tiles">{tiled}</div>'
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
        f"<section><h2>{escape(section.title)}</h2><p>{escape(section.text)}</p>{keyed}"
        f'<div class="plots{wide}">{inner}</div></section>'
    )
