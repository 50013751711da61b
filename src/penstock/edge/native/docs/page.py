"""The page: contents at the side, operations by chapter, then the schemas."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import Any

from penstock.edge.native.docs import cards
from penstock.edge.native.docs.curl import first_steps
from penstock.edge.native.docs.markup import Html, el, inline, join, paragraphs, raw

_STYLE = resources.files("penstock.edge.native.docs").joinpath("style.css").read_text("utf-8")
_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Crect width='16' height='16' rx='3' fill='%230b6e8a'/%3E"
    "%3Cpath d='M4 4h8M4 8h8M4 12h5' stroke='white' stroke-width='2'/%3E%3C/svg%3E"
)

_HOW_TO_READ = (
    "The examples below use `$ID` and `$RECEIPT` as they are set here; claim again for each."
)

Document = dict[str, Any]
Operation = tuple[str, str, dict[str, Any]]  # method, path, operation


def policy() -> str:
    """Content security policy: no scripts, no requests; our style sheet is allowed by its hash."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def render(document: Document, *, with_key: bool, has_console: bool = False) -> str:
    title = f"{document['info']['title']} API"
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", title),
        el("link", rel="icon", href=_ICON),
        el("style", raw(_STYLE)),
    )
    body = el("body", _contents(document, has_console), _main(document, with_key=with_key))
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def by_chapter(document: Document) -> dict[str, list[Operation]]:
    found: dict[str, list[Operation]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            found[operation["tags"][0]].append((method.upper(), path, operation))
    return found


def _contents(document: Document, has_console: bool) -> Html:
    chapters = (
        join(el("h2", el("a", name, href=f"#{_slug(name)}")), el("ul", *map(_entry, found)))
        for name, found in by_chapter(document).items()
    )
    names = (el("li", el("a", name, href=f"#schema-{name}")) for name in _schemas(document))
    return el(
        "nav",
        el("label", "Contents", for_="menu"),
        el("input", type="checkbox", id="menu"),
        el(
            "div",
            el("h2", el("a", "‹ Console", href="/console")) if has_console else "",
            el("h2", el("a", "Start", href="#start")),
            *chapters,
            el("h2", el("a", "Schemas", href="#schemas")),
            el("ul", *names, class_="names"),
            class_="list",
        ),
    )


def _entry(found: Operation) -> Html:
    method, path, operation = found
    link = el(
        "a",
        cards.verb(method),
        el("span", path.removeprefix("/v1"), class_="path"),
        href=f"#{cards.anchor(operation)}",
        title=operation["summary"],
    )
    return el("li", link)


def _main(document: Document, *, with_key: bool) -> Html:
    chapters = (
        join(
            el("h2", name, id=_slug(name)),
            *(
                cards.operation_card(*operation, _schemas(document), with_key=with_key)
                for operation in found
            ),
        )
        for name, found in by_chapter(document).items()
    )
    schemas = (cards.schema_card(*named) for named in _schemas(document).items())
    return el(
        "main",
        _start(document, with_key=with_key),
        *chapters,
        el("h2", "Schemas", id="schemas"),
        *schemas,
    )


def _start(document: Document, *, with_key: bool) -> Html:
    info = document["info"]
    about_keys = document["components"]["securitySchemes"]["apiKey"]["description"]
    needed = "This server requires an API key: put it into `PENSTOCK_KEY`." if with_key else ""
    source = el("a", "/v1/openapi.json", href="/v1/openapi.json")
    return join(
        el(
            "h1", f"{info['title']} API ", el("span", info["version"], class_="version"), id="start"
        ),
        paragraphs(info["description"]),
        el("p", inline(about_keys), " ", inline(needed)),
        el("p", "The OpenAPI document, for programs ", document["openapi"], ": ", source, "."),
        el("h2", "First steps"),
        el("pre", el("code", first_steps(with_key=with_key))),
        el("p", inline(_HOW_TO_READ)),
    )


def _schemas(document: Document) -> dict[str, Any]:
    found: dict[str, Any] = document["components"]["schemas"]
    return found


def _slug(name: str) -> str:
    return name.lower().replace(",", "").replace(" ", "-")
