"""The tables of the page on the lake are those of domain/lake/layout.py."""

from __future__ import annotations

import textwrap

from penstock.domain.lake import layout as lake
from penstock.domain.lake.layout import Table
from tests.docs.snippets import ROOT

PAGE = ROOT / "docs" / "archive.md"


def shown(table: Table) -> str:
    """`python -m tests.docs.test_archive` prints all of them."""
    where = "/".join(f"{name}=…" for name in table.partitions)
    meaning = f"{table.meaning[0].upper()}{table.meaning[1:]}"
    text = f"{meaning}. In `{table.name}/{where}/`, by the day of `{table.instant}`."
    lines = [
        f"### {table.name}",
        "",
        textwrap.fill(text, 130, break_on_hyphens=False),
        "",
        "| column | type | null | meaning |",
        "|---|---|---|---|",
    ]
    for column in table.columns:
        is_null = "yes" if column.is_nullable else ""
        lines.append(f"| `{column.name}` | {column.type} | {is_null} | {column.meaning} |")
    return "\n".join(lines) + "\n"


def test_the_tables_are_those_of_the_domain():
    text = PAGE.read_text(encoding="utf-8")
    for table in lake.TABLES.values():
        assert shown(table) in text, "python -m tests.docs.test_archive"


if __name__ == "__main__":
    for each in lake.TABLES.values():
        print(shown(each))
