"""HTML that is escaped by construction: only the results of `el` are inserted unescaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

_CODE = re.compile(r"`([^`]*)`")
_VOID = frozenset({"input", "link", "meta"})


class Html(str):
    """Text that is markup and needs no escaping."""

    __slots__ = ()


def el(name: str, /, *parts: str, **attributes: str) -> Html:
    """`el("a", "R&D", href="#x")`; Python keywords get a trailing underscore (`class_`)."""
    rendered = "".join(f' {key.rstrip("_")}="{escape(value)}"' for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{rendered}>")
    return Html(f"<{name}{rendered}>{join(*parts)}</{name}>")


def join(*parts: str, by: str = "") -> Html:
    safe = (part if isinstance(part, Html) else escape(part) for part in parts)
    return Html(escape(by).join(safe))


def raw(text: str) -> Html:
    """Mark trusted text, such as a style sheet, as markup."""
    return Html(text)


def inline(text: str) -> Html:
    """Render a sentence with `code` in backticks."""
    parts = _CODE.split(text)
    return join(*(el("code", part) if i % 2 else part for i, part in enumerate(parts)))


def paragraphs(text: str) -> Html:
    return join(*(el("p", inline(part)) for part in text.split("\n\n")))


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, class_: str = "") -> Html:
    """Render a table; empty without rows.  A wide table scrolls by itself, not with the page."""
    if not rows:
        return Html("")
    top = el("tr", *(el("th", cell) for cell in head))
    body = (el("tr", *(el("td", cell) for cell in row)) for row in rows)
    inside = el("table", el("thead", top), el("tbody", *body), class_=class_)
    return el("div", inside, class_="wide")
