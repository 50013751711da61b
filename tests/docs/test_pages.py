"""Every page leads somewhere, can be found, and begins with what it is for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.snippets import ROOT

MAX_CHARACTERS = 140
MAX_LINES_BEFORE_THE_TOUR = 82
GENERATED = {"cli.md", "configuration.md"}  # at least in part
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
INDEX = ROOT / "docs" / "README.md"

# Products that few readers know, and pages that are about their protocols or resources.  Elsewhere
# they are named in moving.md and in sections such as "Coming from …" only.
PRODUCTS = {
    "AweQ": {
        "README.md", "aweq.md", "sqs.md", "operations.md", "security.md", "console.md",
        "architecture.md",
    },
    "gateleen": {"push.md", "pipeline.md", "architecture.md"},
    "killbill": set(),
    "Izenda": {"external-workers.md", "architecture.md"},
    "autoscale-workload-rabbit": set(),
}  # fmt: skip
MOVING = re.compile(r"^## (?:Coming|Differences) from .*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    assert list(broken_links(page, page.read_text(encoding="utf-8"))) == []


def test_a_broken_link_is_found() -> None:
    text = (
        "[a](nowhere.md), [b](glossary.md#nothing), [c](glossary.md#queues), [d](#here)\n## Here\n"
    )

    assert list(broken_links(INDEX, text)) == ["nowhere.md", "glossary.md#nothing"]


def test_the_index_lists_every_page() -> None:
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", INDEX.read_text(encoding="utf-8")))

    assert listed == {path.name for path in ROOT.glob("docs/*.md")} - {INDEX.name}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_begins_with_a_title_and_a_sentence(page: Path) -> None:
    title, blank, first, *_ = page.read_text(encoding="utf-8").splitlines()

    assert (title[:2], blank) == ("# ", "")
    assert re.match(r"[A-Z]", first)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lines_of_prose_are_short(page: Path) -> None:
    if page.name in GENERATED:
        return
    text = page.read_text(encoding="utf-8")
    words = [re.sub(r"`[^`]{80,}`", "`code`", line) for line in prose(text)]

    assert [line for line in words if len(line) > MAX_CHARACTERS] == []


@pytest.mark.parametrize("product", PRODUCTS)
def test_products_that_few_know_are_named_where_readers_move_from_them(product: str) -> None:
    pages = {page.name: MOVING.sub("", page.read_text()) for page in ROOT.glob("docs/*.md")}

    naming = {name for name, text in pages.items() if product in text}

    assert naming <= PRODUCTS[product] | {"moving.md"} | GENERATED


def test_the_front_page_names_no_product_that_few_know() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    assert [product for product in PRODUCTS if product in text] == []
    assert (
        len(text.partition("\n## Five minutes with curl\n")[0].splitlines())
        <= MAX_LINES_BEFORE_THE_TOUR
    )


def broken_links(page: Path, text: str) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)\s]+)\)", "\n".join(prose(text, with_tables=True))):
        if re.match(r"\w+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        if not path.exists():
            yield target
        elif anchor:
            content = path.read_text(encoding="utf-8") if name else text
            if anchor not in headings(content):
                yield target


def headings(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", "\n".join(prose(text)), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def prose(text: str, *, with_tables: bool = False) -> Iterator[str]:
    """The lines outside of code and, unless they are asked for, of tables."""
    is_code = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and (with_tables or not line.lstrip().startswith("|")):
            yield line
